// Panels made of @grafana/ui: near to the server's own, which are in no package.
import React from 'react';
import { getFieldDisplayName, getFieldDisplayValues, PanelPlugin } from '@grafana/data';
import { config, setPluginImportUtils } from '@grafana/runtime';
import { BigValue, BigValueGraphMode, BigValueJustifyMode, Table, TimeSeries, VizRepeater } from '@grafana/ui';
import { sceneUtils } from '@grafana/scenes';
import { custom } from './fields';

const words = (text: string) => (
  <div style={{ display: 'grid', placeItems: 'center', height: '100%', opacity: 0.6 }}>{text}</div>
);
const nothing = (panel: any) => words(panel.fieldConfig?.defaults?.noValue || 'No data');
const LEGEND = { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] };

const timeseries = new PanelPlugin((panel: any) =>
  panel.data.series.length === 0 ? (
    nothing(panel)
  ) : (
    <TimeSeries
      frames={panel.data.series}
      structureRev={panel.data.structureRev ?? 1}
      timeRange={panel.timeRange}
      timeZone={panel.timeZone}
      width={panel.width}
      height={panel.height}
      legend={panel.options.legend ?? LEGEND}
      options={panel.options}
    >
      {() => <></>}
    </TimeSeries>
  )
).useFieldConfig({
  standardOptions: { color: { defaultValue: { mode: 'palette-classic' } } },
  useCustomConfig: custom(
    'drawStyle', 'lineInterpolation', 'lineWidth', 'fillOpacity', 'gradientMode', 'fillBelowTo', 'lineStyle',
    'spanNulls', 'insertNulls', 'showPoints', 'pointSize', 'stacking', 'axisPlacement', 'axisLabel', 'axisSoftMin',
    'axisSoftMax', 'axisColorMode', 'axisBorderShow', 'scaleDistribution', 'hideFrom', 'thresholdsStyle',
    'transform', 'barAlignment', 'barWidthFactor', 'lineColor'
  ),
} as any);

const stat = new PanelPlugin((panel: any) => {
  const reduceOptions = { calcs: ['lastNotNull'], values: false, ...panel.options.reduceOptions };
  const values = getFieldDisplayValues({
    fieldConfig: panel.fieldConfig,
    reduceOptions,
    replaceVariables: panel.replaceVariables,
    theme: config.theme2,
    data: panel.data.series,
    timeZone: panel.timeZone,
    sparkline: false,
  } as any);
  return (
    <VizRepeater
      getValues={() => values}
      width={panel.width}
      height={panel.height}
      source={panel.data}
      renderCounter={panel.renderCounter}
      orientation={'auto' as any}
      autoGrid={true}
      renderValue={({ value, width, height }: any) => (
        <BigValue
          value={values.length > 1 ? value.display : { ...value.display, title: undefined }}
          width={width}
          height={height}
          theme={config.theme2}
          text={panel.options.text}
          colorMode={panel.options.colorMode}
          graphMode={BigValueGraphMode.None}
          justifyMode={BigValueJustifyMode.Auto}
          textMode={panel.options.textMode ?? 'auto'}
        />
      )}
    />
  );
}).useFieldConfig({} as any);

const table = new PanelPlugin((panel: any) =>
  panel.data.series.length === 0 ? (
    nothing(panel)
  ) : (
    <Table data={panel.data.series[0]} width={panel.width} height={panel.height} />
  )
).useFieldConfig({
  useCustomConfig: custom('align', 'cellOptions', 'width', 'minWidth', 'filterable', 'inspect', 'hidden'),
} as any);

const NAME_WIDTH = 180;

const stateTimeline = new PanelPlugin((panel: any) => {
  const from = panel.timeRange.from.valueOf();
  const until = panel.timeRange.to.valueOf();
  const scale = (panel.width - NAME_WIDTH) / (until - from);
  const step = panel.height / Math.max(panel.data.series.length, 1);
  return (
    <svg width={panel.width} height={panel.height}>
      {panel.data.series.map((frame: any, row: number) => {
        const [times, states] = frame.fields;
        const ends = [...times.values.slice(1), until];
        return (
          <g key={row} transform={`translate(0 ${row * step})`}>
            <text x={0} y={step / 2 + 4} fill="currentColor" fontSize={12}>
              {getFieldDisplayName(states, frame, panel.data.series)}
            </text>
            {times.values.map((time: number, index: number) => (
              <rect
                key={index}
                x={NAME_WIDTH + scale * (time - from)}
                width={Math.max(1, scale * (ends[index] - time) + 0.5)}
                y={step * 0.2}
                height={step * 0.6}
                fill={states.display(states.values[index]).color}
              />
            ))}
          </g>
        );
      })}
    </svg>
  );
}).useFieldConfig({ useCustomConfig: custom('fillOpacity', 'lineWidth', 'hideFrom', 'spanNulls', 'insertNulls') } as any);

export function registerPanels() {
  const row = new PanelPlugin(() => null);
  for (const [pluginId, plugin] of Object.entries({ timeseries, stat, table, row, 'state-timeline': stateTimeline })) {
    sceneUtils.registerRuntimePanelPlugin({ pluginId, plugin: plugin as any });
  }
  setPluginImportUtils({
    importPanelPlugin: (id: string) => Promise.resolve(new PanelPlugin(() => words(`no preview of ${id}`))),
    getPanelPluginFromCache: () => undefined,
  } as any);
}
