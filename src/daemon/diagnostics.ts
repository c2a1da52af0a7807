import { readdir, readFile } from "node:fs/promises";
import { arch, release } from "node:os";
import { join } from "node:path";
import { isGenerated } from "../engine/batch-ids.ts";
import type { Task } from "../engine/task.ts";
import { withoutName } from "../engine/task-names.ts";
import type {
  Diagnostics,
  FolderSettings,
  FolderSnapshot,
  OpenFolder,
  ServerStatus,
} from "../rpc/contract.ts";
import { withoutPassword } from "../opencode/server-url.ts";
import { DaemonFiles } from "../rpc/daemon-files.ts";
import { ifPresent, readJson } from "../state/json-files.ts";
import { memoryOf } from "../state/processes.ts";
import { redactor, secretsIn, secretsInUrl } from "./redaction.ts";

const LOG_LINES = 2_000;
/** The variables whose names are listed; their values never are. */
const LISTED = /^(?:OPENCODE|ASYNCAGENTS|XDG|NODE_|NO_PROXY|HTTPS?_PROXY|ELECTRON)/i;

/** A folder as it is at the moment. */
export interface DescribedFolder {
  readonly opened: OpenFolder;
  readonly windows: number;
  readonly server: ServerStatus | undefined;
  readonly snapshot: FolderSnapshot;
}

interface DescribedDaemon {
  readonly stateFolder: string;
  readonly home: string;
  readonly version: string;
  readonly startedAt: number;
  readonly folders: readonly DescribedFolder[];
}

/**
 * What helps to find out why something failed, for a user to send to others: no prompts, answers, descriptions, file
 * contents or values of variables, and what is known or looks like a secret is hidden in the rest.
 */
export async function collectDiagnostics(daemon: DescribedDaemon): Promise<Diagnostics> {
  const { stateFolder, home, version, startedAt, folders } = daemon;
  const facts = {
    version,
    system: { platform: process.platform, release: release(), arch: arch(), node: process.version },
    processes: [
      { what: "daemon", pid: process.pid, memory: await memoryOf(process.pid), startedAt },
      ...folders.flatMap(({ server }) => (server ? [{ what: "server", ...server }] : [])),
    ],
    folders: folders.map(describeFolder),
    log: await logTail(stateFolder),
  };
  const secrets = [
    ...secretsIn(process.env),
    ...folders.flatMap(({ opened: { env, settings } }) => [
      ...secretsIn(env),
      ...secretsInUrl(settings.server.url ?? ""),
      settings.password ?? "",
    ]),
    ...(await storedSecrets(stateFolder)),
  ];
  // Reasons of failures in the log may contain the path of a worktree.
  const names = folders.flatMap(({ snapshot }) =>
    snapshot.tasks.flatMap(({ worktree }) => worktree?.name ?? []),
  );
  const redact = redactor(secrets, home);
  return inEveryText(facts, (text) => names.reduce(withoutName, redact(text))) as Diagnostics;
}

function describeFolder({ opened, windows, snapshot }: DescribedFolder): object {
  const { connection, sessions, tasks, subagents, requests } = snapshot;
  return {
    directory: opened.directory,
    windows,
    connection,
    settings: describeSettings(opened.settings),
    variables: Object.keys(opened.env).filter((name) => LISTED.test(name)),
    counts: { sessions: sessions.length, subagents: subagents.length, requests: requests.length },
    tasks: tasks.map(describeTask),
  };
}

/** The setup command and the patterns of files are the user's own texts. */
function describeSettings({ engine, server, password, ...settings }: FolderSettings): object {
  const { include, setup, ...isolation } = engine.isolation;
  return {
    ...settings,
    server: { ...server, url: server.url && withoutPassword(server.url) },
    hasPassword: password !== undefined,
    engine: {
      ...engine,
      isolation: {
        ...isolation,
        includes: include?.length ?? 0,
        setup: setup && { isAllowed: setup.isAllowed, timeout: setup.timeout },
      },
    },
  };
}

/** Names each fact that is included, so that a new one of the record stays out until it is known to be harmless. */
function describeTask(task: Task): object {
  const { id, revision, agent, model, parentSessionID, parentMessageID, launchedBy } = task;
  const { isForked, forkedFrom, insteadOf, worktree, resumeCount, status, queued, toolCalls } = task;
  const { promptMessageID, finalMessageID, createdAt, startedAt, endedAt, worked, waited } = task;
  const { retrievedAt, clearedAt, adoptedAt, cost, tokens, notice } = task;
  return {
    ...{ id, revision, agent, model, parentSessionID, parentMessageID, launchedBy },
    // Any other is a name that an agent or a user gave.
    batchID: isGenerated(task.batchID) ? task.batchID : "named",
    ...{ isForked, forkedFrom, insteadOf, resumeCount, status, queued, toolCalls },
    ...{ promptMessageID, finalMessageID, createdAt, startedAt, endedAt, worked, waited },
    ...{ retrievedAt, clearedAt, adoptedAt, cost, tokens, notice },
    worktree: worktree && {
      name: withoutName(worktree.name, worktree.name),
      setup: worktree.setup,
      outcome: worktree.outcome,
    },
    error: task.error?.name,
    hasFollowUp: task.followUp !== undefined,
    phase: task.progress?.phase,
  };
}

async function logTail(stateFolder: string): Promise<readonly string[]> {
  const { log } = new DaemonFiles(stateFolder);
  const texts = await Promise.all([`${log}.1`, log].map((path) => ifPresent(readFile(path, "utf8"))));
  return texts.join("").trimEnd().split("\n").slice(-LOG_LINES);
}

/** The passwords and tokens with which this user's processes recognize one another. */
async function storedSecrets(stateFolder: string): Promise<readonly string[]> {
  const names = (await readdir(stateFolder)).filter((name) => name.endsWith(".json"));
  const files = await Promise.all(
    names.map((name) => readJson(join(stateFolder, name)).catch(() => undefined)),
  );
  return files.flatMap((file) => {
    const { password, token } = (file ?? {}) as Readonly<Record<string, unknown>>;
    return [password, token].filter((value) => typeof value === "string");
  });
}

function inEveryText(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((item) => inEveryText(item, redact));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inEveryText(item, redact)]));
}
