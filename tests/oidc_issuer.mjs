// A real OpenID provider on the loopback interface, for the tests: node oidc_issuer.mjs REDIRECT_URI, says its address.
// People sign in with their name and any password. POST /swap replaces the identity token of the next answers, as a
// provider could that was taken over, or that mixes up its clients.
import { once } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";

const require = createRequire(new URL("../extension/package.json", import.meta.url));
const { Provider } = await import(require.resolve("oidc-provider"));

const groups = { olga: ["everyone", "search-operators"], rob: ["search-reviewers"], eve: ["everyone"] };
const client = (id) => ({ client_id: id, client_secret: `${id}-secret`, redirect_uris: [process.argv[2]] });
let swapped;

const server = http.createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [client("console"), client("other")],
  pkce: { required: () => true },
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
  conformIdTokenClaims: false,
  ttl: { IdToken: 3600, Session: 3600, Interaction: 3600, Grant: 3600, AuthorizationCode: 60, AccessToken: 600 },
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({ sub: name, preferred_username: name === "mallory" ? "olga" : name, groups: groups[name] ?? "search-operators" }),
  }),
});
provider.use(async (ctx, next) => {
  if (ctx.path === "/swap") {
    swapped = ctx.query.token;
    ctx.body = "";
    return;
  }
  await next();
  if (ctx.path === "/token" && swapped) ctx.body = { ...ctx.body, id_token: swapped };
});
server.on("request", provider.callback());
console.log(issuer);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
