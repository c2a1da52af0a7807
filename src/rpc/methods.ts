import type { AgentCall } from "../engine/agent-permissions.ts";
import type { LaunchInput } from "../engine/launcher.ts";
import { sentence, type Text } from "../engine/sentence.ts";
import type { SteerOptions } from "../engine/steering.ts";
import type { FolderMethod } from "./contract.ts";

/** The position of the cancel signal among a call's arguments. */
interface SignalPlace {
  /** The index of the argument. */
  readonly at: number;
  /** Set if the argument is an options object that has the signal in this field. */
  readonly field?: "signal";
  /** The message for a caller that cancelled. */
  readonly cancelled: Text;
}

interface MethodTraits {
  /**
   * Whether the call can safely be repeated if the daemon died before it answered, because it changes nothing more or
   * the engine recognizes its call ID.
   */
  readonly repeatable: boolean | ((args: readonly unknown[]) => boolean);
  readonly signal?: SignalPlace;
}

const READ: MethodTraits = { repeatable: true };
/** Requests a state, so that repeating the call has no further effect. */
const REACH: MethodTraits = { repeatable: true };
const ONCE: MethodTraits = { repeatable: false };

const WAIT_CANCELLED = sentence("Waiting was cancelled. The tasks continue.");

const METHODS: Readonly<Record<FolderMethod, MethodTraits>> = {
  launch: { repeatable: ([input]) => (input as LaunchInput).callID !== undefined },
  resume: { repeatable: ([, , call]) => (call as AgentCall | undefined)?.callID !== undefined },
  steer: { repeatable: ([, , options]) => (options as SteerOptions | undefined)?.call?.callID !== undefined },
  withdraw: ONCE,
  retry: ONCE,
  continue: ONCE,
  cancel: ONCE,
  cancelBatch: ONCE,
  stopSubagent: REACH,
  adopt: REACH,
  clear: ONCE,
  clearBatch: ONCE,
  restore: ONCE,
  worktreeChanges: READ,
  removeWorktree: REACH,
  remakeWorktree: {
    repeatable: true,
    signal: {
      at: 1,
      cancelled: sentence("The setup was cancelled. The worktree is there, but may not be complete."),
    },
  },
  planBringBack: READ,
  bringBack: ONCE,
  undoBringBack: ONCE,
  letAgentMerge: ONCE,
  createBranch: ONCE,
  discardWorktree: ONCE,
  undoDiscard: ONCE,
  listWorktrees: READ,
  cleanUpWorktree: REACH,
  rename: REACH,
  setupOutput: READ,
  predictConflicts: REACH,
  output: {
    repeatable: true,
    signal: { at: 1, field: "signal", cancelled: WAIT_CANCELLED },
  },
  answer: ONCE,
  agents: READ,
  takenSince: READ,
  lastAnswer: READ,
  explainRequest: READ,
  previewFork: {
    repeatable: true,
    signal: { at: 1, cancelled: sentence("Token counting was cancelled.") },
  },
  forkStarts: READ,
  search: READ,
  image: READ,
  models: READ,
  changes: READ,
  fileSaved: REACH,
  planRevert: READ,
  ensureSession: REACH,
  join: REACH,
  connect: { repeatable: true, signal: { at: 0, cancelled: sentence("Connecting was cancelled.") } },
  cancelConnecting: REACH,
  refresh: REACH,
  disconnect: REACH,
  stopServer: REACH,
  attachCommand: READ,
  previewCall: READ,
  callTool: {
    repeatable: false,
    signal: { at: 3, cancelled: WAIT_CANCELLED },
  },
  planAgentTools: READ,
  applyAgentTools: ONCE,
};

export const methodNames = Object.keys(METHODS) as readonly FolderMethod[];

export function isRepeatable(method: FolderMethod, args: readonly unknown[]): boolean {
  const { repeatable } = METHODS[method];
  return typeof repeatable === "boolean" ? repeatable : repeatable(args);
}

/** A call as it is sent: without its signal. */
export interface TravellingCall {
  readonly args: readonly unknown[];
  readonly signal: AbortSignal | undefined;
  /** The message for a caller that cancelled. */
  readonly cancelled: Text;
}

export function takeSignal(method: FolderMethod, args: readonly unknown[]): TravellingCall {
  const place = METHODS[method].signal;
  if (!place) return { args, signal: undefined, cancelled: "" };
  const { at, field, cancelled } = place;
  const given = args[at];
  if (!field) return { args: args.toSpliced(at, 1), signal: given as AbortSignal | undefined, cancelled };
  if (given === undefined) return { args, signal: undefined, cancelled };
  const { [field]: signal, ...options } = given as { readonly signal?: AbortSignal };
  return { args: args.with(at, options), signal, cancelled };
}

/** The signal among the arguments of a call. */
export function signalOf(method: FolderMethod, args: readonly unknown[]): AbortSignal | undefined {
  const place = METHODS[method].signal;
  if (!place) return undefined;
  const given = args[place.at];
  return place.field
    ? (given as { readonly signal?: AbortSignal } | undefined)?.signal
    : (given as AbortSignal);
}

/** The inverse of {@link takeSignal}, for the daemon. `args` must be complete, with undefined for omitted arguments. */
export function putSignal(
  method: FolderMethod,
  args: readonly unknown[],
  signal: AbortSignal,
): readonly unknown[] {
  const place = METHODS[method].signal;
  if (!place) return args;
  const { at, field } = place;
  if (!field) return args.toSpliced(at, 0, signal);
  return args.with(at, { ...(args[at] as object | undefined), [field]: signal });
}
