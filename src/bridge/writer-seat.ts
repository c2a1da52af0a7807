import { createHash, randomBytes } from "node:crypto";
import { rmdirSync, rmSync } from "node:fs";
import { chmod, lstat, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import type { Server, Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/*
 * The seat of a name is taken by listening there, so the system frees it with the process that holds it.
 *
 * On Windows it is a named pipe, of which there is one only. Elsewhere it is a folder for one socket: who wants the seat
 * binds a socket in a folder of its own and renames that folder to the seat, which the system refuses while the seat
 * holds a file. So a socket in the seat listens from the first moment on, and one that refuses connections was left
 * behind by a crash; its name is never given again, so that removing it cannot hit a successor's. This takes no lock,
 * which a crash could leave behind as well.
 */

const isPipe = process.platform === "win32";

/** Bytes of a Unix socket's path that every system takes (macOS: 103). */
const MAX_SOCKET_PATH_BYTES = 100;
/** What a socket's path has more than its seat's, in bytes. */
const NAME_BYTES = 9;

/**
 * The seat of the window that writes to this server in this folder.
 * @param server what tells it from other servers: its URL, or one fixed word for the server run for the folder
 * @param directory the folder's real path
 */
export function seatPath(stateFolder: string, server: string, directory: string): string {
  const key = hash(`${server}\n${directory}`);
  if (isPipe) return `\\\\.\\pipe\\opencode-async-agents-${hash(stateFolder)}-writer-${key}`;
  const path = join(stateFolder, `writer-${key}`);
  if (Buffer.byteLength(path) + NAME_BYTES <= MAX_SOCKET_PATH_BYTES) return path;
  return join(tmpdir(), `async-agents-${process.getuid?.()}`, hash(path));
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** A seat held by this process. */
export class Seat {
  private constructor(
    private readonly path: string,
    private readonly file: string | undefined,
    private readonly server: Server,
    private readonly sockets: ReadonlySet<Socket>,
  ) {}

  /** Undefined: somebody else holds it. */
  static async take(path: string, onConnection: (socket: Socket) => void): Promise<Seat | undefined> {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      onConnection(socket);
    });
    const taken = isPipe ? await takePipe(server, path) : await takeFolder(server, path);
    return taken && new Seat(path, taken.file, server, sockets);
  }

  /** Frees the seat at once; connections close when what was written is delivered. */
  leave(): void {
    if (this.file !== undefined) {
      rmSync(this.file, { force: true });
      try {
        rmdirSync(this.path);
      } catch {
        // A successor's socket is in it already.
      }
    }
    this.server.close();
    for (const socket of this.sockets) socket.destroySoon();
  }
}

/** A connection to whoever holds the seat. Undefined: nobody does; what a crash left there is gone. */
export async function reachSeat(path: string): Promise<Socket | undefined> {
  if (!isPipe) await ensurePrivateFolder(dirname(path));
  for (const file of isPipe ? [path] : await filesIn(path)) {
    try {
      return await open(file);
    } catch (error) {
      const code = codeOf(error);
      if (code === "ECONNREFUSED" || code === "ENOTSOCK") await rm(file, { force: true });
      // Reset: its holder left while this one waited to be let in.
      else if (code !== "ENOENT" && code !== "ECONNRESET") throw error;
    }
  }
  return undefined;
}

async function takePipe(server: Server, path: string): Promise<{ file: undefined } | undefined> {
  try {
    await listen(server, path);
    return { file: undefined };
  } catch (error) {
    if (codeOf(error) === "EADDRINUSE") return undefined;
    throw error;
  }
}

async function takeFolder(server: Server, path: string): Promise<{ file: string } | undefined> {
  // Made for this user alone, and the socket in it: whoever can connect is this user, which no token could add to.
  const draft = await mkdtemp(join(dirname(path), "w-"));
  const name = randomBytes(6).toString("base64url");
  try {
    await listen(server, join(draft, name));
    await chmod(join(draft, name), 0o600);
    await rename(draft, path);
    return { file: join(path, name) };
  } catch (error) {
    server.close();
    await rm(draft, { recursive: true, force: true });
    if (["ENOTEMPTY", "EEXIST"].includes(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve(socket);
    });
  });
}

/** Throws if the path is somebody else's, or no real folder. */
async function ensurePrivateFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const stats = await lstat(path);
  if (!stats.isDirectory()) throw new Error(`${path} is not a folder.`);
  if (stats.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user.`);
  if (stats.mode & 0o077) await chmod(path, 0o700);
}

async function filesIn(path: string): Promise<readonly string[]> {
  try {
    return (await readdir(path)).map((name) => join(path, name));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
