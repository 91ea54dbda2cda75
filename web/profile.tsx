import { Elysia } from "elysia";
import { useContext } from "preact/hooks";
import { endSignIn, listSignIns, type SignIn } from "../core/auth/session/sign_ins.ts";
import { getProfile, updateProfile } from "../core/catalog/person/profile.ts";
import { parseTimeZone } from "../platform/time_zone.ts";
import { certificateQuestion, SignIns } from "./admin/sign_ins.tsx";
import { Alert, type Trouble } from "./pages/forms.tsx";
import { type Field, Form } from "./parts/form.tsx";
import { Reader } from "./parts/reader.ts";
import { profilePath, signOutPath } from "./paths.ts";
import type { PageContent, Site, Visit } from "./site.tsx";

const signInsPath = `${profilePath}/sign-ins`;

/** What users say about themselves, and what they are signed in with. */
export function profilePages(site: Site) {
  const { deps } = site;

  async function fieldsOf({ visitor }: Visit): Promise<Field[]> {
    const { name, version, timeZone } = await getProfile(deps, visitor.actor.user);
    return [
      { name: "version", label: "", kind: "hidden", value: String(version) },
      { name: "name", label: "Name", kind: "line", isRequired: true, value: name },
      {
        name: "time_zone",
        label: "Time zone",
        kind: "line",
        value: timeZone ?? "",
        suggestions: Intl.supportedValuesOf("timeZone"),
        help: "Such as Europe/Berlin. The pages show times in it, and read those that you write; by default UTC",
      },
    ];
  }

  const save = site.submit(async (visit, values) => ({
    run: async (context) => {
      const timeZone = values.given("time_zone");
      await updateProfile(context, visit.visitor.actor, {
        name: values.text("name"),
        version: values.id("version"),
        timeZone: timeZone === undefined ? null : parseTimeZone("time_zone", timeZone),
      });
      return `${profilePath}?saved`;
    },
    again: async (fill) => view(visit, fill(await fieldsOf(visit))),
  }));

  const end = site.submit(async (visit, values, address) => {
    const certificate = values.given("certificate");
    if (certificate !== undefined)
      return certificateQuestion({ id: certificate, action: signInsPath, back: profilePath });
    return {
      run: async (context) => {
        await endSignIn(context, visit.visitor.actor, values.text("sign_in"), address);
        return profilePath;
      },
      again: async (fill) => view(visit, { fields: await fieldsOf(visit), trouble: fill([]).trouble }),
    };
  });

  async function view(visit: Visit, form: ProfileForm): Promise<PageContent> {
    const { actor } = visit.visitor;
    const cursor = visit.url.searchParams.get("cursor") ?? undefined;
    const { items, next_cursor } = await listSignIns(deps, actor, { user: actor.user, cursor });
    return {
      title: "Profile",
      content: <Profile {...form} signIns={items} older={next_cursor} />,
    };
  }

  return new Elysia({ name: "profile page", prefix: "/profile" })
    .get(
      "/",
      site.read(async (visit) =>
        view(visit, { fields: await fieldsOf(visit), isSaved: visit.url.searchParams.has("saved") }),
      ),
    )
    .post("/", save)
    .post("/sign-ins", end);
}

interface ProfileForm {
  fields: readonly Field[];
  trouble?: Trouble;
  isSaved?: boolean;
}

function Profile({
  fields,
  trouble,
  isSaved,
  signIns,
  older,
}: ProfileForm & { signIns: readonly SignIn[]; older: string | null }) {
  const { user, csrf } = useContext(Reader);
  return (
    <div class="narrow">
      <h1>Profile</h1>
      <p class="quiet">
        You are <bdi>{user}</bdi>. Everybody who may know of you sees your name.
      </p>
      {isSaved && <p role="status">Saved.</p>}
      <Alert trouble={trouble} />
      <Form action={profilePath} fields={fields}>
        <button type="submit" class="primary">
          Save
        </button>
      </Form>
      <section class="list">
        <h2>Sign-ins</h2>
        <SignIns items={signIns} action={signInsPath} />
        {older && <a href={`${profilePath}?cursor=${older}`}>Older</a>}
      </section>
      <section class="list">
        <h2>Sign out everywhere</h2>
        <form method="post" action={signOutPath} class="fields">
          <p>
            Ends your sign-ins in all browsers, this one included, and in all terminals, with their access
            tokens and certificates of svc. The access that you got there ends, too. Terminals that wait for
            your approval have to ask again.
          </p>
          <p class="quiet">
            Access requests, certificates of your organisation and your sign-in at the provider stay: after
            the loss of a device, end these as well.
          </p>
          <input type="hidden" name="csrf" value={csrf} />
          <input type="hidden" name="everywhere" value="on" />
          <div class="row">
            <button type="submit" class="danger">
              Sign out everywhere
            </button>
          </div>
        </form>
      </section>
    </div>
  );
}
