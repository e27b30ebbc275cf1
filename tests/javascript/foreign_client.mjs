/** An oblivious client of other people's making: HPKE by hpke-js, binary HTTP by bhttp-js; only RFC 9458's few
 * concatenations are here. Prints the inner status and the body's SHA-256 for each path that it is given. */

import { createHash } from "node:crypto";
import { Aes128Gcm, CipherSuite, HkdfSha256 } from "@hpke/core";
import { DhkemX25519HkdfSha256 } from "@hpke/dhkem-x25519";
import { BHttpDecoder, BHttpEncoder } from "bhttp-js";

const [gateway, ...paths] = process.argv.slice(2);
const suite = new CipherSuite({ kem: new DhkemX25519HkdfSha256(), kdf: new HkdfSha256(), aead: new Aes128Gcm() });
const utf8 = (text) => new TextEncoder().encode(text);
const joined = (...parts) => Uint8Array.from(parts.flatMap((part) => [...new Uint8Array(part)]));

const configuration = new Uint8Array(await (await fetch(gateway)).arrayBuffer()).slice(2);
const recipientPublicKey = await suite.kem.deserializePublicKey(configuration.slice(3, 35).buffer);
const header = joined(configuration.slice(0, 3), [0, 1, 0, 1]);

for (const path of paths) {
  const request = await new BHttpEncoder().encodeRequest(new Request(`https://lists.example${path}`));
  const info = joined(utf8("message/bhttp request"), [0], header);
  const sender = await suite.createSenderContext({ recipientPublicKey, info });
  const body = joined(header, sender.enc, await sender.seal(request));
  const outer = await fetch(gateway, { method: "POST", headers: { "content-type": "message/ohttp-req" }, body });
  if (outer.status !== 200) throw new Error(`status ${outer.status}`);
  const sealed = new Uint8Array(await outer.arrayBuffer());
  const salt = sealed.slice(0, 16);
  const secret = await sender.export(utf8("message/bhttp response"), 16);
  const base = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const derived = async (name, bits) =>
    crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: joined(sender.enc, salt), info: utf8(name) }, base, bits);
  const key = await crypto.subtle.importKey("raw", await derived("key", 128), "AES-GCM", false, ["decrypt"]);
  const iv = await derived("nonce", 96);
  const opened = new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed.slice(16)));
  const answer = new BHttpDecoder().decodeResponse(opened);
  const content = Buffer.from(await answer.arrayBuffer());
  console.log(`${answer.status} ${createHash("sha256").update(content).digest("hex")}`);
}
