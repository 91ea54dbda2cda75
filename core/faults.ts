import { ConfigurationError } from "../platform/errors.ts";

/** The variable that a fault is about. */
const nameIn = (fault: string) => /^[A-Z][A-Z0-9_]*/.exec(fault)?.[0] ?? fault;

/** What is wrong with a configuration, collected from all parts that read it, so that it is reported together. */
export class ConfigurationFaults {
  constructor(private readonly faults: string[]) {}

  get any(): boolean {
    return this.faults.length > 0;
  }

  /**
   * Makes a part, or notes why it cannot be made; there is one fault for each variable. What is returned may be used only
   * after `throwIfAny`.
   */
  async collect<T>(make: () => T | Promise<T>): Promise<T> {
    try {
      return await make();
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      const known = new Set(this.faults.map(nameIn));
      this.faults.push(...error.faults.filter((fault) => !known.has(nameIn(fault))));
      return undefined as T;
    }
  }

  /** @throws ConfigurationError with every fault */
  throwIfAny(): void {
    if (this.any) throw new ConfigurationError(this.faults);
  }
}
