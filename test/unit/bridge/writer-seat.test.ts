import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { reachSeat, Seat, seatPath } from "../../../src/bridge/writer-seat.ts";
import { tempDir } from "../../support/temp.ts";
import { windowProcesses } from "../../support/windows.ts";

const greet = (socket: Socket): void => void socket.write("here");

describe("The writer's seat", () => {
  let folder: string;
  let path: string;
  const seats: Seat[] = [];

  beforeEach(() => {
    folder = tempDir("seat");
    path = seatPath(folder, "http://127.0.0.1:1", "/work");
  });

  afterEach(() => {
    for (const seat of seats.splice(0)) seat.leave();
  });

  const take = async (): Promise<Seat | undefined> => {
    const seat = await Seat.take(path, greet);
    if (seat) seats.push(seat);
    return seat;
  };

  it("is taken once, and reached by the others", async () => {
    assert.equal(await reachSeat(path), undefined);
    assert.ok(await take());
    assert.equal(await take(), undefined);
    const socket = await reachSeat(path);
    assert.ok(socket);
    assert.equal(String(((await once(socket, "data")) as [Buffer])[0]), "here");
    socket.destroy();
  });

  it("is free again, with nothing left behind, when its holder leaves; who was connected is told", async () => {
    const seat = await take();
    const socket = await reachSeat(path);
    assert.ok(socket);
    const closed = once(socket.resume(), "close");
    seat?.leave();
    await closed;
    assert.deepEqual(readdirSync(folder), []);
    assert.ok(await take());
  });

  it("of ten who want it at once one gets it, and what the others tried with is gone", async () => {
    const taken = (await Promise.all(Array.from({ length: 10 }, take))).filter((seat) => seat !== undefined);
    assert.equal(taken.length, 1);
    if (process.platform !== "win32") assert.equal(readdirSync(folder).length, 1);
  });

  it("is free after its holder was killed, and a slow one who saw what was left cannot drive out the next", async () => {
    const [holder] = await windowProcesses(1);
    await holder?.tell({ type: "elect", seat: path });
    const left = process.platform === "win32" ? [] : readdirSync(path);
    await holder?.kill();
    assert.equal(await take(), process.platform === "win32" ? seats[0] : undefined);
    assert.equal(await reachSeat(path), undefined);
    assert.ok(await take());
    for (const name of left) assert.ok(!existsSync(join(path, name)));
    assert.ok((await reachSeat(path))?.destroy());
  });

  it("lets this user alone in", async function () {
    if (process.platform === "win32") return this.skip();
    chmodSync(folder, 0o777);
    assert.equal(await reachSeat(path), undefined);
    await take();
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    assert.equal(statSync(path).mode & 0o777, 0o700);
    const [name = ""] = readdirSync(path);
    assert.equal(statSync(join(path, name)).mode & 0o777, 0o600);
  });

  it("is not looked for where a link leads elsewhere", async function () {
    if (process.platform === "win32") return this.skip();
    const elsewhere = join(folder, "elsewhere");
    mkdirSync(elsewhere);
    symlinkSync(elsewhere, join(folder, "link"));
    await assert.rejects(reachSeat(join(folder, "link", "writer")), /not a folder/);
  });

  it("is another one for another server or folder, and its sockets' paths are short enough", () => {
    assert.notEqual(path, seatPath(folder, "http://127.0.0.1:2", "/work"));
    assert.notEqual(path, seatPath(folder, "http://127.0.0.1:1", "/work2"));
    if (process.platform === "win32") return;
    const long = seatPath(`/${"state".repeat(30)}`, "own", "/work");
    assert.ok(Buffer.byteLength(join(long, "12345678")) <= 100);
    assert.notEqual(long, seatPath(`/${"other".repeat(30)}`, "own", "/work"));
  });
});
