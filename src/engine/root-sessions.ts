import type { Session } from "./server-model.ts";

/** What of a session says whether users work in it. */
export type MaybeRoot = Pick<Session, "id" | "parentID" | "archived" | "updated"> & {
  readonly task: { readonly kind: Session["task"]["kind"] };
};

/** Whether a user can work in it: it is below no other, no task, and not archived. */
export function isRoot<S extends MaybeRoot>(session: S | undefined): session is S {
  return (
    !!session &&
    session.parentID === undefined &&
    session.archived === undefined &&
    session.task.kind !== "task"
  );
}

/** Those in which a user can work, the one touched last first. */
export function rootsOf<S extends MaybeRoot>(sessions: readonly S[]): readonly S[] {
  return sessions.filter((session) => isRoot(session)).sort((a, b) => b.updated - a.updated);
}

/** The first of the candidates in which a user can work, else the one touched last; undefined: there is none. */
export function firstRoot<S extends MaybeRoot>(
  candidates: readonly (string | undefined)[],
  session: (id: string) => S | undefined,
  sessions: () => readonly S[],
): string | undefined {
  const found = candidates.map((id) => (id === undefined ? undefined : session(id)));
  return (found.find((each) => isRoot(each)) ?? rootsOf(sessions())[0])?.id;
}
