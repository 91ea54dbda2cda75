// System calls through FFI, since Bun.serve sets no filters. The filters let a worker or a certificate be replaced without
// failing a request: closing a listening socket alone resets the connections that wait to be accepted.

import { dlopen, ptr } from "bun:ffi";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Linux constants (asm-generic/socket.h, linux/filter.h). */
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
} as const;

/** Sets socket options that Bun.serve does not support. Undefined on systems other than Linux. */
function libc() {
  if (process.platform !== "linux") return undefined;
  for (const name of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      return dlopen(name, prototypes).symbols;
    } catch {
      // Try the other name.
    }
  }
  return undefined;
}

/** The listening sockets of this process. */
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
    // The descriptor that was open only to read the directory.
    return false;
  }
}

/** A classic BPF instruction (linux/filter.h): operation, two jumps, a value. */
type Instruction = readonly [operation: number, yes: number, no: number, value: number];

const RET = 0x06;

function attach(option: number, code: readonly Instruction[], sockets: readonly number[]): void {
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
  for (const fd of sockets) system.setsockopt(fd, SOL_SOCKET, option, ptr(program), 16);
}

/**
 * Stops new connections on these sockets, while handshakes in progress still complete. Without it, closing the socket
 * would cut off connections that are not yet accepted. A client that connects now is not refused: it retries after a
 * second and reaches another process.
 */
export function ignoreNewConnections(sockets: readonly number[]): void {
  // ldb [13]; jset #SYN, drop, take: the TCP header starts at 0.
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
 * Directs every new connection to this socket, which has just joined those that share the port, so that no client has to
 * retry while another process stops (see ignoreNewConnections).
 */
export function takeNewConnections(sockets: readonly number[]): void {
  const own = placeAmongListeners(sockets);
  if (own !== undefined) attach(SO_ATTACH_REUSEPORT_CBPF, [[RET, 0, 0, own]], sockets);
}

/** Shares them again: if no process has this number, the system chooses as if no filter were set. */
export function shareNewConnections(sockets: readonly number[]): void {
  attach(SO_ATTACH_REUSEPORT_CBPF, [[RET, 0, 0, 0xffffffff]], sockets);
}

/** The system numbers the sockets of one address from 0, in the order in which they started listening. */
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
