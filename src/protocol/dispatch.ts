interface Typed {
  readonly type: string;
}

/** One handler for each kind of message: leaving one out does not compile. */
export type Handlers<M extends Typed> = {
  readonly [T in M["type"]]: (message: Extract<M, { readonly type: T }>) => void;
};

export function dispatch<M extends Typed>(handlers: Handlers<M>, message: M): void {
  const handle = handlers[message.type as M["type"]] as (message: M) => void;
  handle(message);
}
