/** Loaded into the daemon before its own code: its clock is off by the milliseconds in a file, which can change. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { setInterval } from "node:timers";

const file = process.env.TEST_CLOCK_FILE;
const RealDate = Date;
let offset = 0;

function read() {
  try {
    offset = Number(readFileSync(file, "utf8"));
  } catch {
    // The clock was not set yet.
  }
}

if (file) {
  read();
  setInterval(read, 50).unref();
  globalThis.Date = class extends RealDate {
    constructor(...args) {
      if (args.length === 0) super(RealDate.now() + offset);
      else super(...args);
    }

    static now() {
      return RealDate.now() + offset;
    }
  };
}
