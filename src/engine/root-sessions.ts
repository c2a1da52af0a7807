import type { Session } from "./server-model.ts";

/** The properties that decide whether users work in a session. */
export type MaybeRoot = Pick<Session, "id" | "parentID" | "archived" | "updated"> & {
  readonly task: { readonly kind: Session["task"]["kind"] };
};

/** Whether users can work in a session: it is no child session, not a task, and not archived. */
export function isRoot<S extends MaybeRoot>(session: S | undefined): session is S {
  return (
    !!session &&
    session.parentID === undefined &&
    session.archived === undefined &&
    session.task.kind !== "task"
  );
}

/** The sessions in which users can work, the most recently updated first. */
export function rootsOf<S extends MaybeRoot>(sessions: readonly S[]): readonly S[] {
  return sessions.filter((session) => isRoot(session)).sort((a, b) => b.updated - a.updated);
}

/** The first candidate in which users can work, otherwise the most recently updated session. Undefined if none. */
export function firstRoot<S extends MaybeRoot>(
  candidates: readonly (string | undefined)[],
  session: (id: string) => S | undefined,
  sessions: () => readonly S[],
): string | undefined {
  const found = candidates.map((id) => (id === undefined ? undefined : session(id)));
  return (found.find((each) => isRoot(each)) ?? rootsOf(sessions())[0])?.id;
}
