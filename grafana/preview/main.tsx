// A dashboard's JSON, drawn by @grafana/scenes. ?dashboard=uid&from=ms&to=ms&var-name=value
import './boot';
import React from 'react';
import { createRoot } from 'react-dom/client';
import { MemoryRouter } from 'react-router-dom';
import { dateTime, ThemeContext } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { config } from '@grafana/runtime';
import {
  CustomVariable,
  EmbeddedScene,
  QueryVariable,
  SceneControlsSpacer,
  SceneDataTransformer,
  SceneGridItem,
  SceneGridLayout,
  SceneQueryRunner,
  SceneTimePicker,
  SceneTimeRange,
  SceneVariableSet,
  VariableValueSelectors,
  VizPanel,
} from '@grafana/scenes';
import { GlobalStyles } from '@grafana/ui';
import { registerFields } from './fields';
import { registerPanels } from './panels';
import { registerSources } from './sources';

const DAY_MS = 86_400_000;

function variable(json: any, chosen: string | null) {
  const { name, label, query } = json;
  const value = chosen ?? json.current?.value ?? '';
  if (json.type === 'custom') {
    return new CustomVariable({ name, label, query, value, text: value });
  }
  const text = chosen ?? json.current?.text ?? '';
  const { datasource, includeAll, allValue } = json;
  return new QueryVariable({ name, label, query, datasource, includeAll, allValue, value, text });
}

function panel(json: any, until: number) {
  const { x, y, w, h } = json.gridPos;
  const days = /^(\d+)d$/.exec(json.timeFrom ?? '');
  const since = days && new SceneTimeRange({
    from: dateTime(until - Number(days[1]) * DAY_MS).toISOString(),
    to: dateTime(until).toISOString(),
    timeZone: 'utc',
  });
  const queries = new SceneQueryRunner({
    datasource: json.datasource,
    queries: json.targets ?? [],
    minInterval: json.interval,
    maxDataPoints: json.maxDataPoints,
  });
  const body = new VizPanel({
    key: `panel-${json.id}`,
    pluginId: json.type,
    title: json.title,
    description: json.description,
    displayMode: json.type === 'row' ? 'transparent' : 'default',
    options: json.options ?? {},
    fieldConfig: json.fieldConfig ?? { defaults: {}, overrides: [] },
    ...(since ? { $timeRange: since } : {}),
    ...(json.type === 'row'
      ? {}
      : { $data: new SceneDataTransformer({ transformations: json.transformations ?? [], $data: queries }) }),
  });
  return new SceneGridItem({ x, y, width: w, height: h, isDraggable: false, isResizable: false, body });
}

async function main() {
  registerFields();
  registerPanels();
  registerSources();
  await initPluginTranslations('grafana-scenes', []);
  await initPluginTranslations('grafana', []);
  const asked = new URLSearchParams(location.search);
  const json = await (await fetch(`/dashboards/${asked.get('dashboard')}.json`)).json();
  const from = Number(asked.get('from'));
  const to = Number(asked.get('to'));
  const scene = new EmbeddedScene({
    $timeRange: new SceneTimeRange({
      from: dateTime(from).toISOString(),
      to: dateTime(to).toISOString(),
      timeZone: 'utc',
    }),
    $variables: new SceneVariableSet({
      variables: json.templating.list.map((each: any) => variable(each, asked.get(`var-${each.name}`))),
    }),
    controls: [
      new VariableValueSelectors({}),
      new SceneControlsSpacer(),
      new SceneTimePicker({ isOnCanvas: true }),
    ],
    body: new SceneGridLayout({ children: json.panels.map((each: any) => panel(each, to)), isLazy: false }),
  });
  const Page = () => {
    React.useEffect(() => scene.activate(), []);
    return <scene.Component model={scene} />;
  };
  createRoot(document.getElementById('root')!).render(
    <ThemeContext.Provider value={config.theme2}>
      <MemoryRouter>
        <GlobalStyles />
        <div style={{ padding: '4px 12px' }}>
          <h2>{json.title}</h2>
          <Page />
        </div>
      </MemoryRouter>
    </ThemeContext.Provider>
  );
}

main();
