/** A request to the worker. The answer has the number of tokens of each text, in order. */
export interface CountRequest {
  readonly id: number;
  readonly texts: readonly string[];
}

export interface CountAnswer {
  readonly id: number;
  readonly counts: readonly number[];
}
