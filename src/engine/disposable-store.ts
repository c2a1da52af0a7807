interface Part {
  dispose(): unknown;
}

/** Parts that are disposed together, last one first, because later parts may need earlier ones. */
export class DisposableStore {
  private readonly parts: Part[];

  constructor(...parts: readonly Part[]) {
    this.parts = [...parts];
  }

  add<T extends Part>(part: T): T {
    this.parts.push(part);
    return part;
  }

  /** Disposes all parts even if some fail, then throws their errors together. */
  dispose(): void {
    const failures: unknown[] = [];
    for (const part of this.parts.splice(0).reverse())
      try {
        part.dispose();
      } catch (error) {
        failures.push(error);
      }
    if (failures.length > 0) throw new AggregateError(failures, failures.map(String).join("; "));
  }
}
