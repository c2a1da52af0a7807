import { formatDuration } from "../engine/notice-text.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { DaemonStatus } from "../rpc/contract.ts";

const SECOND = 1_000;

/** What the daemon does in one folder, whichever windows have it open. */
export type FolderWork = DaemonStatus["folders"][number];

/** The folders with something to stop. A folder that a window has open stays open, so only its tasks can be stopped. */
export function stoppable({ folders }: Pick<DaemonStatus, "folders">): readonly FolderWork[] {
  return folders.filter(({ tasks, windows }) => tasks.length > 0 || windows === 0);
}

/** The folders that use the same server, including this one. */
export function sharers({ server }: FolderWork, { folders }: Pick<DaemonStatus, "folders">): FolderWork[] {
  return folders.filter((folder) => folder.server?.pid === server?.pid);
}

/**
 * Describes the work in a folder: `2 tasks, the oldest for 5 m`, `open in no window`, `412 MB, shared by 2 folders`.
 * @param shared the number of folders that use its server
 */
export function workWords(
  { windows, tasks, server }: FolderWork,
  shared: number,
  now: number,
): readonly Text[] {
  const age = formatDuration(now - Math.min(now - SECOND, ...tasks.map(({ startedAt }) => startedAt)));
  return [
    tasks.length === 0
      ? sentence("no tasks")
      : tasks.length === 1
        ? sentence("1 task, for {0}", age)
        : sentence("{0} tasks, the oldest for {1}", tasks.length, age),
    windows === 0
      ? sentence("open in no window")
      : windows === 1
        ? sentence("open in 1 window")
        : sentence("open in {0} windows", windows),
    ...(server?.memory === undefined ? [] : [memoryWords(Math.round(server.memory / 1_000_000), shared)]),
  ];
}

function memoryWords(megabytes: number, shared: number): Text {
  if (shared === 1) return sentence("{0} MB", megabytes);
  return sentence("{0} MB, shared by {1} folders", megabytes, shared);
}

/** What is lost when these folders are stopped, as sentences. */
export function lossWords(folders: readonly FolderWork[]): readonly Text[] {
  const tasks = folders.reduce((sum, folder) => sum + folder.tasks.length, 0);
  const left = folders.filter(({ windows }) => windows === 0).length;
  return [
    ...(tasks === 0
      ? []
      : tasks === 1
        ? [
            sentence(
              "This stops the agent of 1 task. The task can't be resumed afterwards. Files it has changed are kept as they are.",
            ),
          ]
        : [
            sentence(
              "This stops the agents of {0} tasks. The tasks can't be resumed afterwards. Files they have changed are kept as they are.",
              tasks,
            ),
          ]),
    ...(left === 0
      ? []
      : left === 1
        ? [
            sentence(
              "The folder isn't open in any window, so its OpenCode server also stops unless another folder uses it.",
            ),
          ]
        : [
            sentence(
              "{0} folders aren't open in any window, so their OpenCode servers also stop unless other folders use them.",
              left,
            ),
          ]),
  ];
}
