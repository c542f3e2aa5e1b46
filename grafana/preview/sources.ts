// The two data sources of the dashboards. Every query goes to the bridge, which has a Prometheus and a ClickHouse.
import { createDataFrame, FieldType, LoadingState } from '@grafana/data';
import { setRunRequest } from '@grafana/runtime';
import { RuntimeDataSource, sceneGraph, sceneUtils } from '@grafana/scenes';
import { from } from 'rxjs';
import { map } from 'rxjs/operators';

type Asked = { panel?: string; query: string; ok: boolean; rows: number; error?: string };
const asked: Asked[] = ((window as any).__asked = []);

async function ask(path: string, body: Record<string, unknown>): Promise<any> {
  const answer = await fetch(path, { method: 'POST', body: JSON.stringify(body) });
  const content = await answer.json();
  const rows = (content.series ?? content.rows ?? content.values ?? []).length;
  asked.push({ query: String(body.query), ok: answer.ok, rows, error: content.error });
  if (!answer.ok) {
    throw new Error(content.error);
  }
  return content;
}

const labelled = (format: string, labels: Record<string, string>) =>
  (format || '').replace(/{{\s*(\w+)\s*}}/g, (_, label) => labels[label] ?? '') || JSON.stringify(labels);

function timeSeries(series: any[], target: any) {
  return series.map(({ labels, values }) =>
    createDataFrame({
      refId: target.refId,
      fields: [
        { name: 'Time', type: FieldType.time, values: values.map((pair: any) => pair[0] * 1000) },
        {
          name: 'Value',
          type: FieldType.number,
          labels,
          values: values.map((pair: any) => Number(pair[1])),
          config: { displayNameFromDS: labelled(target.legendFormat, labels) },
        },
      ],
    })
  );
}

function tableFrame(series: any[], target: any) {
  const names = [...new Set(series.flatMap(({ labels }) => Object.keys(labels)))].sort();
  const rows = series.map(({ labels, values }) => ({ labels, pair: values[values.length - 1] }));
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: rows.map(({ pair }) => pair[0] * 1000) },
      ...names.map((name) => ({ name, type: FieldType.string, values: rows.map(({ labels }) => labels[name] ?? '') })),
      { name: `Value #${target.refId}`, type: FieldType.number, values: rows.map(({ pair }) => Number(pair[1])) },
    ],
  });
}

const kind = (type: string) =>
  type.includes('DateTime') ? FieldType.time : /Int|Float|Decimal/.test(type) ? FieldType.number : FieldType.string;

class Bridge extends RuntimeDataSource {
  async metricFindQuery(query: any): Promise<any> {
    const [, metric, label] = /label_values\((.+),\s*(\w+)\)/.exec(typeof query === 'string' ? query : query.query)!;
    const { values } = await ask('/labels', { query: metric, label });
    return values.map((value: string) => ({ text: value, value }));
  }

  query(request: any): any {
    const wrapped = request.scopedVars?.__sceneObject;
    const scene = wrapped?.value?.valueOf?.() ?? wrapped?.valueOf?.();
    const range = { from: request.range.from.valueOf(), to: request.range.to.valueOf(), intervalMs: request.intervalMs };
    const answer = async (target: any) => {
      const text = sceneGraph.interpolate(scene, target.expr ?? target.rawSql, request.scopedVars);
      if (target.expr !== undefined) {
        const { series } = await ask('/promql', { ...range, query: text, instant: Boolean(target.instant) });
        return target.format === 'table' ? (series.length ? [tableFrame(series, target)] : []) : timeSeries(series, target);
      }
      const { columns, rows } = await ask('/sql', { ...range, query: text });
      const fields = columns.map(({ name, type }: any, index: number) => ({
        name,
        type: kind(type),
        values: rows.map((row: any[]) => row[index]),
      }));
      return rows.length ? [createDataFrame({ refId: target.refId, fields })] : [];
    };
    const all = Promise.all(request.targets.map(answer));
    return from(all.then((frames) => ({ data: frames.flat(), state: LoadingState.Done, key: request.requestId })));
  }
}

export function registerSources() {
  setRunRequest((source: any, request: any) => {
    request.intervalMs ??= 60_000;
    return from(source.query(request)).pipe(
      map((answer: any) => ({
        state: LoadingState.Done,
        series: answer.data,
        annotations: [],
        timeRange: request.range,
        request,
        structureRev: 1,
      }))
    ) as any;
  });
  for (const [type, uid] of [
    ['prometheus', 'trueup-prometheus'],
    ['grafana-clickhouse-datasource', 'trueup-clickhouse'],
  ]) {
    sceneUtils.registerRuntimeDataSource({ dataSource: new Bridge(type, uid) });
  }
}
