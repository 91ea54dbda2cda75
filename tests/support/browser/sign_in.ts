import type { Tab } from "./chromium.ts";

const trialPassword = "trial-password";

export interface Ask {
  challenge_url: string;
  polling_url: string;
  user_code?: string;
  /** The secret of a bound client. */
  verifier?: string;
}

/** Asks for a challenge as a client would; without a verifier if `legacy`. */
export async function ask(stack: { url: string }, user = "alice@example.com", legacy = false): Promise<Ask> {
  const verifier = legacy
    ? undefined
    : Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  const hash = verifier && new Bun.CryptoHasher("sha256").update(verifier).digest("base64url");
  const query = hash ? `?code_challenge=${hash}&code_challenge_method=S256` : "";
  const response = await fetch(`${stack.url}/noauth/v1/challenge_generator/${user}${query}`);
  return { ...((await response.json()) as Ask), verifier };
}

/** Signs in at the provider, at whose page the tab is. */
export async function signInAt(
  tab: Tab,
  { user, password = trialPassword }: { user?: string; password?: string } = {},
) {
  await tab.shows("Sign in");
  if (user) await tab.fill("#user", user);
  await tab.click("#password");
  await tab.type(password);
  await tab.click("button:not(.plain)");
}
