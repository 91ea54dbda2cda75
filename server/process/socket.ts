// System calls through FFI, since Bun.serve sets neither a backlog nor filters. The filters let a worker or a certificate be
// replaced without failing a request: closing a listening socket alone resets the connections that wait to be accepted.
// With `attach` made a no-op, "SIGHUP under load replaces every worker, one by one, and no request fails" and "reloads the
// certificate without dropping or refusing requests" fail.

import { dlopen, ptr } from "bun:ffi";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Linux's numbers (asm-generic/socket.h, linux/filter.h). */
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;
/** A state in /proc/net/tcp. */
const LISTEN = "0A";

const int = "i32";
const prototypes = {
  getsockopt: { args: [int, int, int, "ptr", "ptr"], returns: int },
  setsockopt: { args: [int, int, int, "ptr", "u32"], returns: int },
  listen: { args: [int, int], returns: int },
} as const;

/** What Bun.serve cannot be told about its socket is said to the system itself. Undefined where that is not Linux. */
function libc() {
  if (process.platform !== "linux") return undefined;
  for (const name of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      return dlopen(name, prototypes).symbols;
    } catch {
      // The other one, then.
    }
  }
  return undefined;
}

/** The sockets of this process that accept connections. */
export function listeningSockets(system = libc()): number[] {
  if (!system) return [];
  const { getsockopt } = system;
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((fd) => {
      const value = new Int32Array(1);
      const size = new Uint32Array([4]);
      return (
        isSocket(fd) &&
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(value), ptr(size)) === 0 &&
        value[0] === 1
      );
    });
}

function isSocket(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).startsWith("socket:");
  } catch {
    // The one that the folder itself was read by.
    return false;
  }
}

/** Connections that may wait until they are accepted. @returns whether this system lets us say so */
export function setBacklog(connections: number): boolean {
  const system = libc();
  if (!system) return false;
  return listeningSockets(system).every((fd) => system.listen(fd, connections) === 0);
}

/** An instruction of a classic BPF program (linux/filter.h): operation, two jumps, a value. */
type Instruction = readonly [operation: number, yes: number, no: number, value: number];

const RET = 0x06;

function attach(option: number, code: readonly Instruction[], sockets?: readonly number[]): void {
  const system = libc();
  if (!system) return;
  const instructions = new DataView(new ArrayBuffer(code.length * 8));
  code.forEach(([operation, yes, no, value], at) => {
    instructions.setUint16(at * 8, operation, true);
    instructions.setUint8(at * 8 + 2, yes);
    instructions.setUint8(at * 8 + 3, no);
    instructions.setUint32(at * 8 + 4, value, true);
  });
  const program = new BigUint64Array([BigInt(code.length), BigInt(ptr(instructions))]);
  for (const fd of sockets ?? listeningSockets(system))
    system.setsockopt(fd, SOL_SOCKET, option, ptr(program), 16);
}

/**
 * Lets no new connection begin on these sockets (all of this process unless given), while those that are half open still come in. Without
 * it, what has been connected and not yet accepted would be cut off when the socket closes. A client that begins now is
 * not refused: it tries again after a second, and meets another process then.
 */
export function ignoreNewConnections(sockets?: readonly number[]): void {
  // ldb [13]; jset #SYN, drop, take: the header of TCP begins at 0.
  attach(
    SO_ATTACH_FILTER,
    [
      [0x30, 0, 0, 13],
      [0x45, 0, 1, 0x02],
      [RET, 0, 0, 0],
      [RET, 0, 0, 0xffffffff],
    ],
    sockets,
  );
}

/**
 * Of all sockets that share the port, this one (the only one of this process unless given), which has just joined them, gets
 * every new connection, so that none has to begin twice while another one goes (see ignoreNewConnections).
 */
export function takeNewConnections(sockets: readonly number[] = listeningSockets()): void {
  const own = placeAmongListeners(sockets);
  if (own !== undefined) attach(SO_ATTACH_REUSEPORT_CBPF, [[RET, 0, 0, own]], sockets);
}

/** They are shared again: for want of a process of that number, the system chooses as if nobody had said a word. */
export function shareNewConnections(sockets?: readonly number[]): void {
  attach(SO_ATTACH_REUSEPORT_CBPF, [[RET, 0, 0, 0xffffffff]], sockets);
}

/** The system counts the sockets of one address from 0 in the order in which they began to listen. */
function placeAmongListeners([fd]: readonly number[]): number | undefined {
  if (fd === undefined) return undefined;
  const inode = readlinkSync(`/proc/self/fd/${fd}`).match(/\d+/)?.[0];
  const listeners = ["/proc/net/tcp", "/proc/net/tcp6"]
    .flatMap((file) => (existsSync(file) ? readFileSync(file, "utf8").split("\n") : []))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state]) => state === LISTEN);
  const own = listeners.find((fields) => fields[9] === inode)?.[1];
  return own === undefined ? undefined : listeners.filter(([, address]) => address === own).length - 1;
}
