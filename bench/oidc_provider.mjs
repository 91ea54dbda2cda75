// oidc-provider on Node, with its in-memory store and a device code that is never approved. Prints its address,
// followed by the code to poll. Ends when its standard input closes.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const day = 24 * 3600;
const server = createServer();
await new Promise((settle) => server.listen(0, "127.0.0.1", settle));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "terminal",
      token_endpoint_auth_method: "none",
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code"],
      response_types: [],
      redirect_uris: [],
    },
  ],
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: false } },
  ttl: { DeviceCode: day },
});
server.on("request", provider.callback());
const answer = await fetch(`${issuer}/device/auth`, {
  method: "POST",
  body: new URLSearchParams({ client_id: "terminal", scope: "openid" }),
});
const { device_code: code } = await answer.json();
if (!code) throw new Error(`no device code: HTTP ${answer.status}`);
process.stdin.on("end", () => process.exit(0)).resume();
console.log(`${issuer}/token#${code}`);
