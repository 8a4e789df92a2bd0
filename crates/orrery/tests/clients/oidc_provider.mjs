// An OpenID provider (npm: oidc-provider) on loopback, for crates/orrery/tests/cli/ports/oidc.rs.
//
//   node oidc_provider.mjs DIRECTORY PORT     DIRECTORY has node_modules/oidc-provider; port 0 takes any free one
//
// Prints `issuer URL`, then for each line `CLIENT ALGORITHM AUDIENCE` of its input `token ...`, which the client gets of it by its credentials. Each start makes other keys.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [directory, port] = process.argv.slice(2);
const main = createRequire(join(directory, 'index.js')).resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(main));

const key = (kind, options, alg) => {
  const { privateKey } = generateKeyPairSync(kind, options);
  const kid = randomBytes(8).toString('hex');
  return { ...privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' };
};
const secret = randomBytes(16).toString('hex');
const client = (client_id) => ({
  client_id,
  client_secret: secret,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
});

const server = createServer();
await new Promise((listening) => server.listen(Number(port), '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const algorithms = ['RS256', 'ES256', 'EdDSA'];
const provider = new Provider(issuer, {
  clients: ['ann', 'root', 'bob'].map(client),
  jwks: {
    keys: [
      key('rsa', { modulusLength: 2048 }, 'RS256'),
      key('ec', { namedCurve: 'P-256' }, 'ES256'),
      key('ed25519', {}, 'EdDSA'),
    ],
  },
  enabledJWA: { idTokenSigningAlgValues: algorithms },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => {
        const [, algorithm, audience] = resource.split(':');
        return {
          scope: 'read',
          audience,
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
          jwt: { sign: { alg: algorithm } },
        };
      },
    },
  },
});
server.on('request', provider.callback());
console.log(`issuer ${issuer}`);

for await (const line of createInterface({ input: process.stdin })) {
  const [name, algorithm, audience] = line.split(' ');
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}` },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      scope: 'read',
      resource: `urn:${algorithm}:${audience}`,
    }),
  });
  const { access_token, ...other } = await response.json();
  console.log(`token ${access_token ?? JSON.stringify(other)}`);
}
process.exit(0);
