import { connect } from "node:net";

// What every user of the machine can see of connections on the loopback interface, and do about them.

/** The TCP connections and listening sockets of the machine. A server that listens on all addresses is in the second file. */
async function tcpTable() {
  const files = ["/proc/net/tcp", "/proc/net/tcp6"];
  const texts = await Promise.all(files.map((file) => Bun.file(file).text()));
  const portOf = (place = "") => Number.parseInt(place.split(":")[1] ?? "", 16);
  return texts
    .flatMap((text) => text.trim().split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/))
    .map((fields) => ({
      local: portOf(fields[1]),
      remote: portOf(fields[2]),
      state: fields[3],
      inode: fields[9],
    }));
}

/** The ports on which a process listens. */
export async function listeningPorts(pid: number): Promise<number[]> {
  const { stdout } = Bun.spawnSync(["sh", "-c", `ls -l /proc/${pid}/fd`]);
  const inodes = [...stdout.toString().matchAll(/socket:\[(\d+)\]/g)].map(([, inode]) => inode);
  const listening = (await tcpTable()).filter(({ state, inode }) => state === "0A" && inodes.includes(inode));
  return listening.map(({ local }) => local);
}

/** The ports of the clients that are connected to a port. */
export async function clientPorts(port: number): Promise<number[]> {
  return (await tcpTable())
    .filter(({ remote, state }) => remote === port && state === "01")
    .map(({ local }) => local);
}

/** Whether this machine's end of a connection is open, whatever the other end believes. */
export async function isOpen(port: number, remotePort: number): Promise<boolean> {
  return (await tcpTable()).some(
    ({ local, remote, state }) => local === port && remote === remotePort && state === "01",
  );
}

/** The first line of the answer to a client that chooses its own address and port. */
export async function askFrom(address: string, localPort: number, port: number): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, localAddress: address, localPort });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.once("data", (data) => resolve(data.toString().split("\r\n", 1)[0]!)).once("error", reject);
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return promise.finally(() => socket.destroy());
}
