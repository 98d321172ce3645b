-- Packet protection in plain Lua, from docs/handshake.md: HKDF with SHA-256, AES-128-GCM and ChaCha20-Poly1305, for reading captures.
--
-- Lua 5.2 has no integers and no gcrypt, so words are doubles and `bit32` (or Wireshark's `bit`) does the rest. Not constant-time: it protects nothing.

local bits = bit32 or bit
local raw_xor, raw_and, raw_or = bits.bxor, bits.band, bits.bor
local raw_left, raw_right = bits.lshift, bits.rshift
local WORD = 4294967296

-- LuaBitOp gives signed words, bit32 unsigned ones: unsigned is what all of this wants.
local function unsigned(f)
    if f(0xFFFFFFFF, 0xFFFFFFFF) == 0xFFFFFFFF then
        return f
    end
    return function(...)
        return f(...) % WORD
    end
end

local bor, band = unsigned(raw_or), unsigned(raw_and)
local bxor = raw_xor(0x80000000, 0) == 0x80000000 and raw_xor or function(...)
    return raw_xor(...) % WORD
end
local function shl(word, by)
    return raw_left(word, by) % WORD
end
local function shr(word, by)
    return raw_right(word, by) % WORD
end
local function rotl(word, by)
    return bor(shl(word, by), shr(word, 32 - by))
end
local byte, char, rep, concat = string.byte, string.char, string.rep, table.concat

local function be32(text, at)
    local a, b, c, d = byte(text, at, at + 3)
    return ((a * 256 + b) * 256 + c) * 256 + d
end

local function le32(text, at)
    local a, b, c, d = byte(text, at, at + 3)
    return ((d * 256 + c) * 256 + b) * 256 + a
end

local function to_be32(word)
    return char(shr(word, 24), band(shr(word, 16), 255), band(shr(word, 8), 255), band(word, 255))
end

local function to_le32(word)
    return char(band(word, 255), band(shr(word, 8), 255), band(shr(word, 16), 255), shr(word, 24))
end

local function xor_text(one, two)
    local out = {}
    for i = 1, #one do
        out[i] = char(bxor(byte(one, i), byte(two, i)))
    end
    return concat(out)
end

---------------------------------------------------------------------------------------------------- SHA-256, HMAC, HKDF-Expand

-- The first 32 bits of the fractional parts of roots of primes: square roots to begin with, cube roots for the rounds.
local function fraction(root)
    return math.floor((root - math.floor(root)) * WORD)
end
local SHA_START, SHA_ROUNDS = {}, {}
do
    local candidate = 2
    while #SHA_ROUNDS < 64 do
        local prime = true
        for divisor = 2, math.floor(math.sqrt(candidate)) do
            prime = prime and candidate % divisor ~= 0
        end
        if prime then
            if #SHA_START < 8 then
                SHA_START[#SHA_START + 1] = fraction(math.sqrt(candidate))
            end
            SHA_ROUNDS[#SHA_ROUNDS + 1] = fraction(candidate ^ (1 / 3))
        end
        candidate = candidate + 1
    end
end

local function sha256(text)
    local padded = text .. "\128" .. rep("\0", (55 - #text) % 64) .. rep("\0", 4) .. to_be32(#text * 8)
    local h, w = {}, {}
    for i = 1, 8 do
        h[i] = SHA_START[i]
    end
    for block = 1, #padded, 64 do
        for i = 0, 15 do
            w[i] = be32(padded, block + 4 * i)
        end
        for i = 16, 63 do
            local x, y = w[i - 15], w[i - 2]
            local s0 = bxor(rotl(x, 25), rotl(x, 14), shr(x, 3))
            local s1 = bxor(rotl(y, 15), rotl(y, 13), shr(y, 10))
            w[i] = (w[i - 16] + s0 + w[i - 7] + s1) % WORD
        end
        local a, b, c, d, e, f, g, k = h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8]
        for i = 0, 63 do
            local s1 = bxor(rotl(e, 26), rotl(e, 21), rotl(e, 7))
            local choice = bxor(band(e, f), band(WORD - 1 - e, g))
            local one = (k + s1 + choice + SHA_ROUNDS[i + 1] + w[i]) % WORD
            local s0 = bxor(rotl(a, 30), rotl(a, 19), rotl(a, 10))
            local majority = bxor(band(a, b), band(a, c), band(b, c))
            k, g, f, e, d, c, b, a = g, f, e, (d + one) % WORD, c, b, a, (one + s0 + majority) % WORD
        end
        for i, value in ipairs({ a, b, c, d, e, f, g, k }) do
            h[i] = (h[i] + value) % WORD
        end
    end
    local out = {}
    for i = 1, 8 do
        out[i] = to_be32(h[i])
    end
    return concat(out)
end

local function hmac(key, text)
    key = key .. rep("\0", 64 - #key)
    return sha256(xor_text(key, rep("\92", 64)) .. sha256(xor_text(key, rep("\54", 64)) .. text))
end

local function hkdf_expand(secret, info, length)
    local out, block, counter = "", "", 1
    while #out < length do
        block = hmac(secret, block .. info .. char(counter))
        out, counter = out .. block, counter + 1
    end
    return out:sub(1, length)
end

---------------------------------------------------------------------------------------------------- AES-128-GCM

-- The S-box, and the table that joins SubBytes, ShiftRows and MixColumns.
local SBOX, T0, T1, T2, T3 = {}, {}, {}, {}, {}
do
    local function double(x)
        x = x * 2
        return x >= 256 and bxor(x, 0x11B) or x
    end
    local power, log, x = {}, {}, 1
    for i = 0, 254 do
        power[i], log[x] = x, i
        x = bxor(x, double(x))
    end
    for value = 0, 255 do
        local inverse = value == 0 and 0 or power[(255 - log[value]) % 255]
        local out = 0x63
        for shift = 0, 4 do
            out = bxor(out, bor(band(shl(inverse, shift), 255), shr(inverse, 8 - shift)))
        end
        SBOX[value] = out
        local two = double(out)
        local word = two * 16777216 + out * 65536 + out * 256 + bxor(two, out)
        T0[value], T1[value], T2[value], T3[value] = word, rotl(word, 24), rotl(word, 16), rotl(word, 8)
    end
end

local function aes_keys(key)
    local words, constant = {}, 1
    for i = 0, 3 do
        words[i] = be32(key, 1 + 4 * i)
    end
    for i = 4, 43 do
        local word = words[i - 1]
        if i % 4 == 0 then
            word = rotl(word, 8)
            word = SBOX[shr(word, 24)] * 16777216 + SBOX[band(shr(word, 16), 255)] * 65536
                + SBOX[band(shr(word, 8), 255)] * 256 + SBOX[band(word, 255)]
            word = bxor(word, constant * 16777216)
            constant = constant * 2
            constant = constant >= 256 and bxor(constant, 0x11B) or constant
        end
        words[i] = bxor(words[i - 4], word)
    end
    return words
end

local function aes_block(k, a, b, c, d)
    a, b, c, d = bxor(a, k[0]), bxor(b, k[1]), bxor(c, k[2]), bxor(d, k[3])
    for r = 4, 36, 4 do
        a, b, c, d =
            bxor(T0[shr(a, 24)], T1[band(shr(b, 16), 255)], T2[band(shr(c, 8), 255)], T3[band(d, 255)], k[r]),
            bxor(T0[shr(b, 24)], T1[band(shr(c, 16), 255)], T2[band(shr(d, 8), 255)], T3[band(a, 255)], k[r + 1]),
            bxor(T0[shr(c, 24)], T1[band(shr(d, 16), 255)], T2[band(shr(a, 8), 255)], T3[band(b, 255)], k[r + 2]),
            bxor(T0[shr(d, 24)], T1[band(shr(a, 16), 255)], T2[band(shr(b, 8), 255)], T3[band(c, 255)], k[r + 3])
    end
    local function last(w, x, y, z, key)
        local word = SBOX[shr(w, 24)] * 16777216 + SBOX[band(shr(x, 16), 255)] * 65536
            + SBOX[band(shr(y, 8), 255)] * 256 + SBOX[band(z, 255)]
        return bxor(word, key)
    end
    return last(a, b, c, d, k[40]), last(b, c, d, a, k[41]), last(c, d, a, b, k[42]), last(d, a, b, c, k[43])
end

-- For each byte of a block and each value of it, its product with the hash key.
local function ghash_tables(h)
    local powers = {}
    local a, b, c, d = h[1], h[2], h[3], h[4]
    for i = 0, 127 do
        powers[i] = { a, b, c, d }
        local carry = d % 2
        d = shr(d, 1) + (c % 2) * 2147483648
        c = shr(c, 1) + (b % 2) * 2147483648
        b = shr(b, 1) + (a % 2) * 2147483648
        a = shr(a, 1)
        if carry == 1 then
            a = bxor(a, 0xE1000000)
        end
    end
    local tables = {}
    for position = 0, 15 do
        local entries = { [0] = { 0, 0, 0, 0 } }
        for value = 1, 255 do
            local bit_index, low = 7, 1
            while band(value, low) == 0 do
                low, bit_index = low * 2, bit_index - 1
            end
            local rest, power = entries[value - low], powers[8 * position + bit_index]
            entries[value] = { bxor(rest[1], power[1]), bxor(rest[2], power[2]), bxor(rest[3], power[3]), bxor(rest[4], power[4]) }
        end
        tables[position] = entries
    end
    return tables
end

local function ghash(tables, state, text)
    text = text .. rep("\0", -#text % 16)
    local a, b, c, d = state[1], state[2], state[3], state[4]
    for at = 1, #text, 16 do
        local w, x, y, z = 0, 0, 0, 0
        local words = { bxor(a, be32(text, at)), bxor(b, be32(text, at + 4)), bxor(c, be32(text, at + 8)), bxor(d, be32(text, at + 12)) }
        for position = 0, 15 do
            local word = words[math.floor(position / 4) + 1]
            local entry = tables[position][band(shr(word, 24 - 8 * (position % 4)), 255)]
            w, x, y, z = bxor(w, entry[1]), bxor(x, entry[2]), bxor(y, entry[3]), bxor(z, entry[4])
        end
        a, b, c, d = w, x, y, z
    end
    return { a, b, c, d }
end

local function aes_gcm(key)
    local k = aes_keys(key)
    local tables = ghash_tables({ aes_block(k, 0, 0, 0, 0) })
    return function(nonce, associated, text, tag)
        local n1, n2, n3 = be32(nonce, 1), be32(nonce, 5), be32(nonce, 9)
        local state = ghash(tables, ghash(tables, { 0, 0, 0, 0 }, associated), text)
        local lengths = rep("\0", 4) .. to_be32(#associated * 8) .. rep("\0", 4) .. to_be32(#text * 8)
        state = ghash(tables, state, lengths)
        local m1, m2, m3, m4 = aes_block(k, n1, n2, n3, 1)
        local made = to_be32(bxor(state[1], m1)) .. to_be32(bxor(state[2], m2)) .. to_be32(bxor(state[3], m3)) .. to_be32(bxor(state[4], m4))
        if made ~= tag then
            return nil
        end
        local out, padded = {}, text .. rep("\0", -#text % 16)
        for at = 1, #padded, 16 do
            local s1, s2, s3, s4 = aes_block(k, n1, n2, n3, (at - 1) / 16 + 2)
            out[#out + 1] = to_be32(bxor(be32(padded, at), s1)) .. to_be32(bxor(be32(padded, at + 4), s2))
                .. to_be32(bxor(be32(padded, at + 8), s3)) .. to_be32(bxor(be32(padded, at + 12), s4))
        end
        return concat(out):sub(1, #text)
    end
end

---------------------------------------------------------------------------------------------------- ChaCha20-Poly1305

local function chacha_block(key, counter, nonce)
    local start = { 0x61707865, 0x3320646E, 0x79622D32, 0x6B206574 }
    for i = 0, 7 do
        start[5 + i] = le32(key, 1 + 4 * i)
    end
    start[13], start[14], start[15], start[16] = counter, le32(nonce, 1), le32(nonce, 5), le32(nonce, 9)
    local x = {}
    for i = 1, 16 do
        x[i] = start[i]
    end
    local function quarter(a, b, c, d)
        x[a] = (x[a] + x[b]) % WORD
        x[d] = rotl(bxor(x[d], x[a]), 16)
        x[c] = (x[c] + x[d]) % WORD
        x[b] = rotl(bxor(x[b], x[c]), 12)
        x[a] = (x[a] + x[b]) % WORD
        x[d] = rotl(bxor(x[d], x[a]), 8)
        x[c] = (x[c] + x[d]) % WORD
        x[b] = rotl(bxor(x[b], x[c]), 7)
    end
    for _ = 1, 10 do
        quarter(1, 5, 9, 13)
        quarter(2, 6, 10, 14)
        quarter(3, 7, 11, 15)
        quarter(4, 8, 12, 16)
        quarter(1, 6, 11, 16)
        quarter(2, 7, 12, 13)
        quarter(3, 8, 9, 14)
        quarter(4, 5, 10, 15)
    end
    local out = {}
    for i = 1, 16 do
        out[i] = to_le32((x[i] + start[i]) % WORD)
    end
    return concat(out)
end

-- Numbers of 130 bits as 13 limbs of 10 bits: products and their sums stay exact in a double.
local LIMB, LIMBS = 1024, 13

local function limbs(text)
    local out, value, held, at = {}, 0, 0, 1
    for i = 0, LIMBS - 1 do
        while held < 10 do
            value = value + (byte(text, at) or 0) * 2 ^ held
            held, at = held + 8, at + 1
        end
        out[i] = value % LIMB
        value, held = math.floor(value / LIMB), held - 10
    end
    return out
end

-- Brings limbs below 2^10; what goes over 2^130 comes back five times.
local function carry(number)
    for _ = 1, 2 do
        local over = 0
        for i = 0, LIMBS - 1 do
            local value = number[i] + over
            over = math.floor(value / LIMB)
            number[i] = value % LIMB
        end
        number[0] = number[0] + over * 5
    end
    return number
end

local function poly1305(key, text)
    local clamped = {}
    for i = 1, 16 do
        local mask = (i % 4 == 0) and 15 or ((i % 4 == 1 and i > 1) and 252 or 255)
        clamped[i] = char(band(byte(key, i), mask))
    end
    local r, state = limbs(concat(clamped)), limbs("")
    for at = 1, #text, 16 do
        local block = limbs(text:sub(at, at + 15) .. "\1")
        for i = 0, LIMBS - 1 do
            state[i] = state[i] + block[i]
        end
        local product = {}
        for i = 0, LIMBS - 1 do
            product[i] = 0
        end
        for i = 0, LIMBS - 1 do
            for j = 0, LIMBS - 1 do
                local place = i + j
                local part = state[i] * r[j]
                if place >= LIMBS then
                    place, part = place - LIMBS, part * 5
                end
                product[place] = product[place] + part
            end
        end
        state = carry(product)
    end
    state = carry(state)
    -- At least the modulus 2^130 - 5: take it off.
    local over = true
    for i = 1, LIMBS - 1 do
        over = over and state[i] == LIMB - 1
    end
    if over and state[0] >= LIMB - 5 then
        state[0] = state[0] - (LIMB - 5)
        for i = 1, LIMBS - 1 do
            state[i] = 0
        end
    end
    local sum, addend, over_byte = {}, limbs(key:sub(17, 32)), 0
    for i = 0, LIMBS - 1 do
        local value = state[i] + addend[i] + over_byte
        sum[i] = value % LIMB
        over_byte = math.floor(value / LIMB)
    end
    local out, value, held, limb = {}, 0, 0, 0
    for i = 1, 16 do
        while held < 8 do
            value = value + sum[limb] * 2 ^ held
            held, limb = held + 10, limb + 1
        end
        out[i] = char(value % 256)
        value, held = math.floor(value / 256), held - 8
    end
    return concat(out)
end

local function chacha20_poly1305(key)
    return function(nonce, associated, text, tag)
        local function pad(data)
            return data .. rep("\0", -#data % 16)
        end
        local lengths = to_le32(#associated) .. rep("\0", 4) .. to_le32(#text) .. rep("\0", 4)
        local one_time = chacha_block(key, 0, nonce):sub(1, 32)
        if poly1305(one_time, pad(associated) .. pad(text) .. lengths) ~= tag then
            return nil
        end
        local out = {}
        for at = 1, #text, 64 do
            local part = text:sub(at, at + 63)
            out[#out + 1] = xor_text(part, chacha_block(key, (at - 1) / 64 + 1, nonce))
        end
        return concat(out)
    end
end

---------------------------------------------------------------------------------------------------- The keys of one direction

local AES_128_GCM, CHACHA20_POLY1305, NULL = 1, 2, 4

-- Keys between two renewals. `open(number, header, sealed)` gives the content, or nil when it is not authentic.
local function epoch(suite, secret, protocol_id)
    local self = { suite = suite }
    local info = char(suite)
    local iv = hkdf_expand(secret, "muse iv" .. info, 12)
    local open
    if suite == AES_128_GCM then
        open = aes_gcm(hkdf_expand(secret, "muse key" .. info, 16))
    elseif suite == CHACHA20_POLY1305 then
        open = chacha20_poly1305(hkdf_expand(secret, "muse key" .. info, 32))
    end
    function self.next()
        return epoch(suite, hkdf_expand(secret, "muse rekey", 32), protocol_id)
    end
    function self.open(number, header, sealed)
        local tag_len = suite == NULL and 8 or 16
        if #sealed < tag_len then
            return nil
        end
        local text, tag = sealed:sub(1, -tag_len - 1), sealed:sub(-tag_len)
        if suite == NULL then
            return text
        end
        local place = rep("\0", 4) .. to_be32(math.floor(number / WORD)) .. to_be32(number % WORD)
        return open(xor_text(iv, place), protocol_id .. header, text, tag)
    end
    return self
end

return { epoch = epoch, sha256 = sha256, hkdf_expand = hkdf_expand }
