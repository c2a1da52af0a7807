/** What the worker is asked, and what it answers: the number of tokens of each text, in order. */
export interface CountRequest {
  readonly id: number;
  readonly texts: readonly string[];
}

export interface CountAnswer {
  readonly id: number;
  readonly counts: readonly number[];
}
