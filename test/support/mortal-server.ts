import type { AgentServer } from "../../src/engine/ports.ts";

/** What a process that is killed at a certain call does to the server. */
export interface Death {
  /** The first call from which on nothing is sent any more. */
  arm(call: number, moment: "before" | "after"): void;
  /** The names of the calls since it was armed, the fatal one last. */
  readonly calls: readonly string[];
}

/**
 * A server as a process sees it that is killed at a certain call: that call reaches the server (`after`) or does not
 * (`before`), its answer is never seen, and neither calls nor events come through afterwards.
 */
export function mortal(server: AgentServer): AgentServer & Death {
  const calls: string[] = [];
  let fatal: { readonly call: number; readonly moment: "before" | "after" } | undefined;
  let dead = false;
  const never = new Promise<never>(() => undefined);
  const death: Death = {
    arm(call, moment) {
      calls.length = 0;
      fatal = { call, moment };
    },
    calls,
  };
  const wrapped: AgentServer = new Proxy(server, {
    get(target, name, receiver): unknown {
      if (name === "onEvent")
        return (listener: (event: unknown) => unknown) =>
          target.onEvent((event) => (dead ? undefined : listener(event)));
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== "function") return member;
      return (...args: unknown[]): unknown => {
        if (dead) return never;
        const call = (): unknown => Reflect.apply(member, target, args) as unknown;
        if (!fatal) return call();
        calls.push(String(name));
        if (calls.length <= fatal.call) return call();
        dead = true;
        if (fatal.moment === "after") void Promise.resolve(call()).catch(() => undefined);
        return never;
      };
    },
  });
  return Object.assign(wrapped, death);
}

/** A server of which one call does something else. */
export function replacing<K extends keyof AgentServer>(
  server: AgentServer,
  name: K,
  replacement: AgentServer[K],
): AgentServer {
  return new Proxy(server, {
    get: (target, member, receiver): unknown =>
      member === name ? replacement : (Reflect.get(target, member, receiver) as unknown),
  });
}

/** A server whose aborts are kept, for who waits until all of them are answered: a cancel does not await its last one. */
export function keepingAborts(server: AgentServer, aborts: Promise<void>[]): AgentServer {
  return replacing(server, "abort", (sessionID) => {
    const abort = server.abort(sessionID);
    aborts.push(abort);
    return abort;
  });
}

/** A server whose events never tell that a turn has ended. */
export function withoutEndEvents(server: AgentServer): AgentServer {
  return replacing(server, "onEvent", (listener) =>
    server.onEvent((event) => {
      const tells = event.type === "session-status" || event.type === "message-changed";
      if (!tells) listener(event);
    }),
  );
}
