import type { ActivePlugin } from "../../core/plugin/call.ts";
import type { Plugins } from "../../core/plugin/choose.ts";
import type { PluginType } from "../../core/plugin.ts";
import type { Fake } from "./fake.ts";

export interface FakePlugins extends Plugins, Disposable {
  /** Throws if one of them had an unexpected call. */
  assertExpected(): void;
}

/** Uses these plugins, in this order, for `startTestServer` or a `AppContext`. */
export function pluginsOf(...fakes: Pick<Fake<PluginType>, "plugin" | "assertExpected">[]): FakePlugins {
  const ofType = <T extends PluginType>(type: T) =>
    fakes.map(({ plugin }) => plugin).filter((plugin) => plugin.type === type) as ActivePlugin<T>[];
  const assertExpected = () => {
    for (const fake of fakes) fake.assertExpected();
  };
  return {
    ofType,
    find: (type, slug) => ofType(type).find((plugin) => plugin.slug === slug),
    assertExpected,
    [Symbol.dispose]: assertExpected,
  };
}
