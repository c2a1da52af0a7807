import type fc from "fast-check";

/** A part of the product that must survive whatever is sent to it. */
export interface Target {
  readonly name: string;
  /** Starts what is tested. The property fails if something crashes, is refused without a reason, or gets lost. */
  open(): Promise<OpenTarget>;
}

export interface OpenTarget {
  readonly property: fc.IAsyncPropertyWithHooks<unknown[]>;
  close(): void | Promise<void>;
}
