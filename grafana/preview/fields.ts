// The standard field options and transformations, by id, without the editors that only Grafana's server has.
import {
  dataLinksOverrideProcessor,
  displayNameOverrideProcessor,
  identityOverrideProcessor,
  numberOverrideProcessor,
  standardEditorsRegistry,
  standardFieldConfigEditorRegistry,
  standardTransformers,
  standardTransformersRegistry,
  stringOverrideProcessor,
  thresholdsOverrideProcessor,
  unitOverrideProcessor,
  valueMappingsOverrideProcessor,
} from '@grafana/data';

const processors: Record<string, any> = {
  displayName: displayNameOverrideProcessor,
  unit: unitOverrideProcessor,
  min: numberOverrideProcessor,
  max: numberOverrideProcessor,
  decimals: numberOverrideProcessor,
  noValue: stringOverrideProcessor,
  color: identityOverrideProcessor,
  thresholds: thresholdsOverrideProcessor,
  mappings: valueMappingsOverrideProcessor,
  links: dataLinksOverrideProcessor,
  fieldMinMax: identityOverrideProcessor,
  filterable: identityOverrideProcessor,
  actions: identityOverrideProcessor,
};

const option = (id: string, process: any, category: string) => ({
  id,
  path: id,
  name: id,
  category: [category],
  editor: () => null,
  override: () => null,
  process,
  shouldApply: () => true,
  settings: {},
});

export function registerFields() {
  standardFieldConfigEditorRegistry.setInit(
    () => Object.entries(processors).map(([id, process]) => option(id, process, 'standard')) as any
  );
  standardEditorsRegistry.setInit(() => []);
  // Some are listed twice, under an old name too; a registry takes an id once.
  const once = new Map(Object.values(standardTransformers).map((transformer: any) => [transformer.id, transformer]));
  standardTransformersRegistry.setInit(
    () =>
      [...once.values()].map((transformer: any) => ({
        id: transformer.id,
        name: transformer.name,
        transformation: () => Promise.resolve(transformer),
        editor: () => null,
        imageDark: '',
        imageLight: '',
      })) as any
  );
}

/** Options of one kind of panel, under `custom`. */
export const custom = (...ids: string[]) => (builder: any) =>
  ids.forEach((id) => builder.addCustomEditor(option(id, identityOverrideProcessor, 'panel')));
