import type { AgentServer } from "../../src/engine/ports.ts";

/** Controls the simulated death of a process at a certain call. */
export interface Death {
  /** Sets the call (by index from now on) at which the process dies. */
  arm(call: number, moment: "before" | "after"): void;
  /** The names of the calls since {@link Death.arm}, the fatal one last. */
  readonly calls: readonly string[];
}

/**
 * A server as seen by a process that is killed at a certain call: the call reaches the server (`after`) or doesn't
 * (`before`), its answer never arrives, and neither calls nor events get through afterwards.
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

/** A server with one call replaced. */
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

/** A server that records its aborts, so that tests can wait for all of them: a cancel doesn't await its last abort. */
export function keepingAborts(server: AgentServer, aborts: Promise<void>[]): AgentServer {
  return replacing(server, "abort", (sessionID) => {
    const abort = server.abort(sessionID);
    aborts.push(abort);
    return abort;
  });
}

/** A server whose events never report the end of a turn. */
export function withoutEndEvents(server: AgentServer): AgentServer {
  return replacing(server, "onEvent", (listener) =>
    server.onEvent((event) => {
      const tells = event.type === "session-status" || event.type === "message-changed";
      if (!tells) listener(event);
    }),
  );
}
