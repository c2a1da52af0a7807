import type { TaskRecord } from "../../src/engine/task.ts";
import type { MemoryServer } from "./memory-server.ts";

type Held = "messages" | "prompt" | "saveRecord" | "session";

/** Holds the server's next call of this method about this session, or its record, until the returned function is called. */
export function hold(server: MemoryServer, method: Held, about: string): () => void {
  const real = server[method].bind(server) as (...args: readonly unknown[]) => Promise<unknown>;
  let release: () => void = () => undefined;
  const held = async (...args: readonly unknown[]): Promise<unknown> => {
    const [what] = args as readonly [string | TaskRecord];
    if ((typeof what === "string" ? what : what.id) === about) {
      Object.assign(server, { [method]: real });
      await new Promise<void>((resolve) => (release = resolve));
    }
    return real(...args);
  };
  Object.assign(server, { [method]: held });
  return () => release();
}
