/**
 * Puts this process, and those that it starts, in the time zone where it is about noon, because a test during which a
 * day ends would find the tasks of a moment ago in another group.
 */
const toNoon = 12 - new Date().getUTCHours();
// The signs in these names are the opposite of what one expects.
process.env["TZ"] = `Etc/GMT${toNoon > 0 ? "" : "+"}${-toNoon}`;
