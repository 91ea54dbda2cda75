import { aptInstall, ensure } from "./ensure.ts";

/** They are not on every user's PATH. */
export const proxyPrograms = {
  haproxy: "/usr/sbin/haproxy",
  caddy: "/usr/bin/caddy",
  nginx: "/usr/sbin/nginx",
} as const;

const units = Object.keys(proxyPrograms).map((name) => `${name}.service`);
const masks = units.map((unit) => `/etc/systemd/system/${unit}`).join(" ");
// Masks the units while installing, because the packages would start servers on ports 80 and 443.
const install = [
  "mkdir -p /etc/systemd/system",
  `for unit in ${masks}; do ln -sf /dev/null $unit; done`,
  `{ ${aptInstall("haproxy caddy nginx-light")}; code=$?; rm -f ${masks}; ! command -v systemctl || systemctl disable ${units.join(" ")}; [ $code = 0 ]; }`,
].join(" && ");

/** Ensures that Debian's proxies are installed. @throws Error with the command */
export function ensureProxies(): void {
  ensure({
    why: "The tests of forwarded client certificates need HAProxy, Caddy and nginx",
    install,
    found: () => Object.values(proxyPrograms).every((program) => Bun.which(program) !== null),
  });
}
