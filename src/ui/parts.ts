interface Part {
  dispose(): unknown;
}

/** What ends together: the last one first, as it may need those that were there before it. */
export class Parts {
  private readonly parts: Part[] = [];

  own<T extends Part>(part: T): T {
    this.parts.push(part);
    return part;
  }

  /** Ends all, also where one fails; the failures are thrown then. */
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
