// dist/main.js: the page, in one file.
import * as esbuild from 'esbuild';

// The .mjs files of @grafana get Node's way to import CommonJS (default = module.exports); these packages need theirs.
const commonjs =
  /^(react-custom-scrollbars-2|react-highlight-words|react-loading-skeleton|react-calendar|calculate-size|micro-memoize|slate-plain-serializer|fast-deep-equal|react-inlinesvg|react-select|react-select\/(creatable|async|async-creatable)|string-hash)$/;
const innerDefault = {
  name: 'inner-default',
  setup(build) {
    build.onResolve({ filter: commonjs }, ({ namespace, importer, path, resolveDir }) =>
      namespace === 'inner' || !importer.endsWith('.mjs')
        ? undefined
        : { path, namespace: 'inner', pluginData: { resolveDir } }
    );
    build.onLoad({ filter: /.*/, namespace: 'inner' }, ({ path, pluginData }) => ({
      contents: `import * as all from ${JSON.stringify(path)}; export * from ${JSON.stringify(path)};
        const inner = all.default; export default (inner && inner.__esModule && inner.default) ? inner.default : (inner ?? all);`,
      resolveDir: pluginData.resolveDir,
      loader: 'js',
    }));
  },
};

await esbuild.build({
  entryPoints: ['main.tsx'],
  bundle: true,
  format: 'esm',
  outfile: 'dist/main.js',
  loader: { '.svg': 'dataurl', '.png': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl' },
  define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
  alias: { 'react-router-dom-v5-compat': 'react-router-dom' }, // the same API, from the version that is installed
  jsx: 'automatic',
  preserveSymlinks: true,
  logLevel: 'error',
  plugins: [innerDefault],
});
