import { aptInstall, ensure } from "./ensure.ts";

/** It is not on every user's PATH. */
export const sshServer = "/usr/sbin/sshd";

const mask = "/etc/systemd/system/ssh.service";
// Masks the unit while installing, because the package would start a server on port 22.
const install = [
  `mkdir -p /etc/systemd/system && ln -sf /dev/null ${mask}`,
  `{ ${aptInstall("openssh-server openssh-client")}; code=$?; rm -f ${mask}; ! command -v systemctl || systemctl disable ssh.service; [ $code = 0 ]; }`,
].join(" && ");

/** Ensures that Debian's sshd and ssh are installed. @throws Error with the command */
export function ensureSshServer(): void {
  ensure({
    why: "The tests of SSH certificates need OpenSSH's server and client",
    install,
    found: () =>
      Bun.which(sshServer) !== null && Bun.which("ssh") !== null && Bun.which("ssh-agent") !== null,
  });
}
