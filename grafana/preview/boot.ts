// What Grafana's server gives a page before any module of it runs: theme, settings, an event bus.
import { createTheme, EventBusSrv } from '@grafana/data';
import { config, setAppEvents } from '@grafana/runtime';

const theme = createTheme({ colors: { mode: 'dark' } });
Object.assign(config, {
  theme2: theme,
  theme: theme.v1,
  featureToggles: config.featureToggles ?? {},
  bootData: config.bootData ?? { user: { locale: 'en', timezone: 'utc' }, settings: {} },
});
setAppEvents(new EventBusSrv());
document.documentElement.style.fontSize = '14px';
document.body.style.cssText =
  `margin:0;background:${theme.colors.background.canvas};color:${theme.colors.text.primary};` +
  'font:14px Inter,"Liberation Sans",Helvetica,Arial,sans-serif';
