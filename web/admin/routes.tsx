import { Elysia } from "elysia";
import { adminPath } from "../paths.ts";
import type { Site } from "../site.tsx";
import { auditPages } from "./audit.tsx";
import { catalogPages } from "./catalog.tsx";
import { pluginPages } from "./plugins.tsx";
import { rolePages } from "./roles.tsx";
import { schedulePages } from "./schedule.tsx";
import { admins } from "./shared.tsx";
import { signInPages } from "./sign_ins.tsx";
import { workPages } from "./work.tsx";

/** The pages of the administration: paths, titles, and what they show. */
const pages = [
  [
    "catalog",
    "Catalog",
    "Incident types, priorities, services, teams, people, terms, definitions, applications",
  ],
  ["schedule", "Schedule", "The scheduled tasks: last run, next slot, failures; start one now"],
  ["work", "Deliveries and steps", "Messages and steps of incidents that are not done yet; retry one"],
  ["plugins", "Plugins", "What is installed and in use, and what fails"],
  ["roles", "Access roles", "Who gets which credentials; apply a file, check, disable, delete"],
  ["sign-ins", "Sign-ins", "Browsers, access tokens and certificates that are valid now; end them"],
  ["audit", "Audit log", "Who did what; filter and export it"],
] as const;

/** For admins only. */
export function adminPages(site: Site) {
  return new Elysia({ name: "admin pages", prefix: "/admin" })
    .get(
      "/",
      admins(site, async () => ({ title: "Administration", content: <Overview /> })),
    )
    .use(catalogPages(site))
    .use(schedulePages(site))
    .use(workPages(site))
    .use(pluginPages(site))
    .use(rolePages(site))
    .use(signInPages(site))
    .use(auditPages(site));
}

const Overview = () => (
  <>
    <h1>Administration</h1>
    <ul class="list">
      {pages.map(([path, title, about]) => (
        <li key={path}>
          <div>
            <a href={`${adminPath}/${path}`} data-row>
              {title}
            </a>
            <p class="quiet">{about}</p>
          </div>
        </li>
      ))}
    </ul>
  </>
);
