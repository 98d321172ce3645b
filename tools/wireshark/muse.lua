-- Dissector for the Muse protocol, version 1, from docs/handshake.md and docs/protocol.md.
--
-- Handshakes are recognised by their checksum, and data packets by the handshake before them; where that is not in the capture, use "Decode As"
-- with `muse`. With a key log (Endpoint::danger_key_log, muse_danger_key_log) packets are opened: set the preference "Key log". Whole messages of
-- unreliable channels carry no number, which the packet does not say: set the preference "Unreliable channels" to what the game uses.

local here = debug.getinfo(1, "S").source:match("^@?(.*[/\\])") or ""
local crypto = dofile(here .. "muse_crypto.lua")

local muse = Proto("muse", "Muse Protocol")

local KINDS = { [1] = "Hello", [2] = "Cookie", [3] = "Connect", [4] = "Accept", [5] = "Refuse", [6] = "Wait", [7] = "Describe", [8] = "Description" }
local MODES = { [0] = "insecure", [1] = "pinned key", [2] = "token" }
local REASONS = {
    [1] = "version", [2] = "schema", [3] = "full", [4] = "token required", [5] = "token invalid", [6] = "token expired",
    [7] = "token used", [8] = "token for another server", [9] = "wrong key", [10] = "denied", [11] = "busy", [12] = "insecure",
}
local FRAMES = {
    [0x00] = "padding", [0x01] = "ping", [0x02] = "close", [0x03] = "path challenge", [0x04] = "path response",
    [0x05] = "parity", [0x06] = "protected section", [0x07] = "skip", [0x08] = "progress",
}
local PRIORITIES = { [0] = "urgent", [1] = "high", [2] = "normal", [3] = "low" }
local HEADER_LEN, FIRST_NUMBER, FRAGMENT_LEN = 7, 65280, 1024

local f = {}
local function field(name, make, ...)
    f[name] = make("muse." .. name, ...)
end
field("kind", ProtoField.uint8, "Kind", base.DEC, KINDS)
field("protocol", ProtoField.uint64, "Protocol id", base.HEX)
field("checksum", ProtoField.bytes, "Checksum")
field("version", ProtoField.uint16, "Version")
field("random", ProtoField.bytes, "Client random")
field("cookie", ProtoField.bytes, "Cookie")
field("suites", ProtoField.uint8, "Suites offered", base.HEX)
field("mode", ProtoField.uint8, "Mode", base.DEC, MODES)
field("schema", ProtoField.uint64, "Schema hash", base.HEX)
field("token", ProtoField.bytes, "Connect token")
field("token_id", ProtoField.bytes, "Token id")
field("token_key", ProtoField.uint32, "Token's key number")
field("token_expires", ProtoField.absolute_time, "Token expires", base.UTC)
field("exchange", ProtoField.bytes, "Key exchange message")
field("padding", ProtoField.bytes, "Padding")
field("reason", ProtoField.uint8, "Reason", base.DEC, REASONS)
field("detail", ProtoField.bytes, "Detail")
field("page", ProtoField.uint16, "Page")
field("pages", ProtoField.uint16, "Pages")
field("description", ProtoField.bytes, "Part of the description")
field("flags", ProtoField.uint8, "Flags", base.HEX)
field("flag_phase", ProtoField.bool, "Key phase", 8, nil, 0x40)
field("flag_acks", ProtoField.bool, "Acknowledgements", 8, nil, 0x20)
field("flag_now", ProtoField.bool, "Acknowledge at once", 8, nil, 0x10)
field("flag_section", ProtoField.bool, "Protected section alone", 8, nil, 0x08)
field("connection", ProtoField.uint32, "Connection id", base.HEX)
field("number", ProtoField.uint16, "Packet number (low)")
field("number_full", ProtoField.uint64, "Packet number")
field("sealed", ProtoField.bytes, "Encrypted content")
field("tag", ProtoField.bytes, "Tag")
field("ack_newest", ProtoField.uint16, "Newest packet received")
field("ack_runs", ProtoField.uint8, "Further runs", base.DEC, nil, 0x3F)
field("ack_delay", ProtoField.uint8, "Delay (512 us)")
field("ack_marks", ProtoField.uint8, "Congestion marks")
field("ack_field", ProtoField.uint32, "Arrived before it", base.HEX)
field("ack_run", ProtoField.string, "Run")
field("frame", ProtoField.uint8, "Frame", base.HEX)
field("close_code", ProtoField.uint16, "Close code")
field("close_text", ProtoField.string, "Close text")
field("path", ProtoField.bytes, "Path data")
field("parity", ProtoField.bytes, "Parity")
field("channel", ProtoField.uint8, "Channel")
field("message", ProtoField.uint16, "Message number (low)")
field("next", ProtoField.uint16, "Next message expected")
field("skipped", ProtoField.uint16, "Skipped in its window")
field("priority", ProtoField.uint8, "Priority", base.DEC, PRIORITIES, 0x18)
field("fragment", ProtoField.uint64, "Fragment")
field("total", ProtoField.uint64, "Length of the whole")
field("length", ProtoField.uint64, "Length")
field("payload", ProtoField.bytes, "Payload")
muse.fields = f

local malformed = ProtoExpert.new("muse.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local wrong_sum = ProtoExpert.new("muse.checksum.wrong", "Wrong checksum", expert.group.CHECKSUM, expert.severity.WARN)
muse.experts = { malformed, wrong_sum }

muse.prefs.keys = Pref.string("Key log", "", "File with the lines that danger_key_log wrote")
muse.prefs.protocol = Pref.string("Protocol id", "", "In hexadecimal, for captures without a handshake")
muse.prefs.unreliable = Pref.string("Unreliable channels", "0", "Numbers of the channels whose whole messages carry no number, with commas")

-- What is known of the capture: keys by connection id, protocol ids by conversation, what was opened, by frame, and ids of connections seen.
local keys, protocols, opened, unreliable, seen = {}, {}, {}, {}, {}

local function unhex(text)
    return (text:gsub("%x%x", function(pair)
        return string.char(tonumber(pair, 16))
    end))
end

local function load_keys()
    keys = {}
    local file = muse.prefs.keys ~= "" and io.open(muse.prefs.keys, "r")
    if not file then
        return
    end
    for line in file:lines() do
        local who, id, suite, secret = line:match("^MUSE_(%u+) (%x+) (%d+) (%x+)")
        if who then
            local list = keys[tonumber(id, 16)] or {}
            keys[tonumber(id, 16)] = list
            list[#list + 1] = { who = who, suite = tonumber(suite), secret = unhex(secret), highest = FIRST_NUMBER - 1, epochs = {} }
        end
    end
    file:close()
end

function muse.init()
    opened, protocols, unreliable, seen = {}, {}, {}, {}
    load_keys()
    for number in muse.prefs.unreliable:gmatch("%d+") do
        unreliable[tonumber(number)] = true
    end
end

---------------------------------------------------------------------------------------------------- Handshake

local function step(state, word)
    local mixed = state:bxor(word) * UInt64(0x7F4A7C15, 0x9E3779B9)
    return mixed:bxor(mixed:rshift(32))
end

-- `sum(protocol id, twelve zero bytes, nothing, packet)` of docs/handshake.md.
local function checksum_holds(buffer)
    local len = buffer:len() - 8
    local state = buffer(1, 8):le_uint64():bxor(UInt64(0x84222325, 0xCBF29CE4))
    local zero = UInt64(0)
    state = step(step(step(state, UInt64(12)), zero), zero)
    state = step(step(state, zero), zero)
    state = step(state, UInt64(len))
    local whole = len - len % 8
    for at = 0, whole - 1, 8 do
        state = step(state, buffer(at, 8):le_uint64())
    end
    local rest = zero
    for at = len - 1, whole, -1 do
        rest = rest:lshift(8):bor(UInt64(buffer(at, 1):uint()))
    end
    return step(state, rest) == buffer(len, 8):le_uint64()
end

local LENGTHS = { [1] = { 64, 1500 }, [2] = { 53, 53 }, [3] = { 384, 1017 }, [4] = { 33, 342 }, [5] = { 34, 200 }, [6] = { 33, 33 }, [7] = { 1000, 1500 }, [8] = { 37, 997 } }

local function is_handshake(buffer)
    local len = buffer:len()
    if len < 33 then
        return false
    end
    local range = LENGTHS[buffer(0, 1):uint()]
    return range ~= nil and len >= range[1] and len <= range[2] and checksum_holds(buffer)
end

local function conversation_of(pinfo)
    local one = tostring(pinfo.src) .. "|" .. pinfo.src_port
    local two = tostring(pinfo.dst) .. "|" .. pinfo.dst_port
    return one < two and one .. " " .. two or two .. " " .. one
end

local function dissect_token(buffer, tree)
    local token = tree:add(f.token, buffer)
    if buffer:len() >= 78 then
        token:add_le(f.token_key, buffer(9, 4))
        token:add(f.token_id, buffer(13, 16))
        token:add(f.token_expires, buffer(37, 8), NSTime(buffer(37, 8):le_uint64():tonumber(), 0))
    end
end

local BODIES = {}

BODIES[1] = function(buffer, tree, last)
    tree:add_le(f.version, buffer(9, 2))
    tree:add(f.random, buffer(11, 16))
    return 27
end

BODIES[2] = function(buffer, tree)
    tree:add(f.random, buffer(9, 16))
    tree:add(f.cookie, buffer(25, 20))
    return 45
end

BODIES[3] = function(buffer, tree, last)
    tree:add_le(f.version, buffer(9, 2))
    tree:add(f.random, buffer(11, 16))
    tree:add(f.cookie, buffer(27, 20))
    tree:add_le(f.connection, buffer(47, 4))
    tree:add(f.suites, buffer(51, 1))
    tree:add(f.mode, buffer(52, 1))
    tree:add_le(f.schema, buffer(53, 8))
    local token = buffer(61, 2):le_uint()
    if 65 + token > last then
        return nil
    end
    if token > 0 then
        dissect_token(buffer(63, token), tree)
    end
    local message = buffer(63 + token, 2):le_uint()
    if 65 + token + message > last then
        return nil
    end
    if message > 0 then
        tree:add(f.exchange, buffer(65 + token, message))
    end
    return 65 + token + message
end

BODIES[4] = function(buffer, tree, last)
    tree:add(f.random, buffer(9, 16))
    if last > 25 then
        tree:add(f.exchange, buffer(25, last - 25))
    end
    return last
end

BODIES[5] = function(buffer, tree, last)
    tree:add(f.random, buffer(9, 16))
    tree:add(f.reason, buffer(25, 1))
    if last > 26 then
        tree:add(f.detail, buffer(26, last - 26))
    end
    return last
end

BODIES[6] = function(buffer, tree)
    tree:add(f.random, buffer(9, 16))
    return 25
end

BODIES[7] = function(buffer, tree)
    tree:add_le(f.version, buffer(9, 2))
    tree:add(f.random, buffer(11, 16))
    tree:add(f.cookie, buffer(27, 20))
    tree:add_le(f.page, buffer(47, 2))
    return 49
end

BODIES[8] = function(buffer, tree, last)
    tree:add(f.random, buffer(9, 16))
    tree:add_le(f.page, buffer(25, 2))
    tree:add_le(f.pages, buffer(27, 2))
    if last > 29 then
        tree:add(f.description, buffer(29, last - 29))
    end
    return last
end

local function dissect_handshake(buffer, pinfo, tree)
    local kind = buffer(0, 1):uint()
    pinfo.cols.info = KINDS[kind]
    tree:add(f.kind, buffer(0, 1))
    tree:add_le(f.protocol, buffer(1, 8))
    local last = buffer:len() - 8
    local used = BODIES[kind](buffer, tree, last)
    if not used then
        tree:add_proto_expert_info(malformed, "the lengths in it go beyond its end")
        return
    end
    if used < last then
        tree:add(f.padding, buffer(used, last - used))
    end
    local sum = tree:add(f.checksum, buffer(last, 8))
    if checksum_holds(buffer) then
        protocols[conversation_of(pinfo)] = buffer:raw(1, 8)
    else
        sum:add_proto_expert_info(wrong_sum)
    end
end

---------------------------------------------------------------------------------------------------- Content

local MALFORMED = {}

-- Takes fields from the front; what goes beyond the end is malformed.
local function reader(buffer)
    local self = { at = 0 }
    function self.left()
        return buffer:len() - self.at
    end
    function self.take(count)
        if count > self.left() then
            error(MALFORMED)
        end
        self.at = self.at + count
        return count > 0 and buffer(self.at - count, count) or nil
    end
    function self.add(tree, field, count)
        local range = self.take(count)
        if range then
            return tree:add_le(field, range), range
        end
    end
    function self.varint()
        if self.left() < 1 then
            error(MALFORMED)
        end
        local count = 2 ^ (buffer(self.at, 1):uint() % 4)
        local range = self.take(count)
        local value = count == 8 and range:le_uint64():rshift(2):tonumber() or math.floor(range:le_uint() / 4)
        return value, range
    end
    return self
end

local function dissect_acks(read, tree)
    local from = read.at
    local acks = tree:add(muse, "Acknowledgements")
    read.add(acks, f.ack_newest, 2)
    local _, range = read.add(acks, f.ack_runs, 1)
    local head = range:uint()
    local runs = head % 64
    if math.floor(head / 64) % 2 == 1 then
        read.add(acks, f.ack_delay, 1)
    end
    if head >= 128 then
        read.add(acks, f.ack_marks, 1)
    end
    if runs == 63 then
        read.add(acks, f.ack_field, 4)
        return
    end
    if runs > 32 then
        error(MALFORMED)
    end
    local arrived, where = read.varint()
    acks:add(f.ack_run, where, (arrived + 1) .. " arrived")
    for _ = 1, runs do
        local gap, gap_range = read.varint()
        local rebuilt = gap % 2 == 1 and " rebuilt" or " missing"
        acks:add(f.ack_run, gap_range, (math.floor(gap / 2) + 1) .. rebuilt)
        local more, more_range = read.varint()
        acks:add(f.ack_run, more_range, more .. " arrived")
    end
    return from
end

local function dissect_message(read, tree, notes)
    local first = read.take(1)
    local head = first:uint()
    local fragment, open_end = math.floor(head / 64) % 2 == 1, math.floor(head / 32) % 2 == 1
    local node = tree:add(f.frame, first)
    node:add(f.priority, first)
    local channel = head % 8
    if channel == 7 then
        local _, range = read.add(node, f.channel, 1)
        channel = range:uint()
    else
        node:add(f.channel, first, channel):set_generated()
    end
    if fragment or not unreliable[channel] then
        read.add(node, f.message, 2)
    end
    local total
    if fragment then
        local index, range = read.varint()
        node:add(f.fragment, range, UInt64(index))
        total, range = read.varint()
        node:add(f.total, range, UInt64(total))
        if total <= FRAGMENT_LEN or index * FRAGMENT_LEN >= total then
            error(MALFORMED)
        end
    end
    local length
    if open_end then
        length = read.left()
    else
        local range
        length, range = read.varint()
        node:add(f.length, range, UInt64(length))
    end
    read.add(node, f.payload, length)
    node:set_text(string.format("%s on channel %d, %d bytes", fragment and "Fragment" or "Message", channel, length))
    notes[#notes + 1] = string.format("%s %d:%d", fragment and "Frag" or "Msg", channel, length)
end

local FRAME_BODIES = {}

FRAME_BODIES[0x00] = function(read, node)
    if read.left() > 0 then
        read.add(node, f.padding, read.left())
    end
end

FRAME_BODIES[0x01] = function() end

FRAME_BODIES[0x02] = function(read, node)
    read.add(node, f.close_code, 2)
    local length = read.take(1):uint()
    local range = read.take(length)
    if range then
        node:add(f.close_text, range)
    end
end

FRAME_BODIES[0x03] = function(read, node)
    read.add(node, f.path, 8)
end
FRAME_BODIES[0x04] = FRAME_BODIES[0x03]

FRAME_BODIES[0x05] = function(read, node)
    local length, range = read.varint()
    node:add(f.length, range, UInt64(length))
    read.add(node, f.parity, length)
end

FRAME_BODIES[0x06] = function() end

FRAME_BODIES[0x07] = function(read, node)
    read.add(node, f.channel, 1)
    read.add(node, f.message, 2)
end

FRAME_BODIES[0x08] = function(read, node)
    read.add(node, f.channel, 1)
    read.add(node, f.next, 2)
    read.add(node, f.skipped, 2)
end

local function dissect_frames(buffer, read, tree, notes, section)
    while read.left() > 0 do
        local first = buffer(read.at, 1):uint()
        if first >= 0x80 then
            dissect_message(read, tree, notes)
        elseif FRAME_BODIES[first] and not section then
            local node = tree:add(f.frame, read.take(1))
            node:set_text(FRAMES[first])
            FRAME_BODIES[first](read, node)
            notes[#notes + 1] = FRAMES[first]
            -- What follows a protected section's mark are messages alone.
            section = first == 0x06
        else
            error(MALFORMED)
        end
    end
end

local function dissect_content(buffer, flags, tree, notes)
    local read = reader(buffer)
    if math.floor(flags / 0x20) % 2 == 1 then
        dissect_acks(read, tree)
    end
    dissect_frames(buffer, read, tree, notes, math.floor(flags / 0x08) % 2 == 1)
end

---------------------------------------------------------------------------------------------------- Data packets

-- The number nearest to `near` with these low 16 bits; of two equally near ones the larger.
local function expand(low, near)
    local candidate = near - near % 65536 + low
    if candidate - near > 32768 then
        return candidate - 65536
    elseif near - candidate >= 32768 then
        return candidate + 65536
    end
    return candidate
end

local function open_with(key, protocol, phase, low, header, sealed)
    if key.protocol ~= protocol then
        key.protocol, key.epochs = protocol, { crypto.epoch(key.suite, key.secret, protocol) }
    end
    local number = expand(low, key.highest)
    if number < 0 then
        return nil
    end
    -- The newest keys of this phase, or the next ones; the first keys have phase 0.
    local count = #key.epochs
    local try = { count, count - 1 }
    if (count - 1) % 2 ~= phase then
        try = { count + 1, count - 1 }
    end
    for _, index in ipairs(try) do
        local epoch = index > count and key.epochs[count].next() or key.epochs[index]
        local content = epoch and (index - 1) % 2 == phase and epoch.open(number, header, sealed)
        if content then
            key.epochs[index] = epoch
            key.highest = math.max(key.highest, number)
            return { number = number, content = content }
        end
    end
end

local function open_packet(buffer, pinfo)
    if opened[pinfo.number] ~= nil then
        return opened[pinfo.number]
    end
    local result = false
    local connection, flags = buffer(1, 4):le_uint(), buffer(0, 1):uint()
    local protocol = protocols[conversation_of(pinfo)]
    if not protocol and muse.prefs.protocol ~= "" then
        protocol = unhex(muse.prefs.protocol):reverse()
    end
    -- A connection that moved has its handshake elsewhere.
    local guesses = {}
    if protocol then
        guesses[1] = protocol
    else
        for _, known in pairs(protocols) do
            guesses[#guesses + 1] = known
        end
    end
    for _, guess in ipairs(guesses) do
        for _, key in ipairs(keys[connection] or {}) do
            local phase, low = math.floor(flags / 0x40) % 2, buffer(5, 2):le_uint()
            result = result or open_with(key, guess, phase, low, buffer:raw(0, HEADER_LEN), buffer:raw(HEADER_LEN)) or false
        end
    end
    opened[pinfo.number] = result
    return result
end

local function dissect_data(buffer, pinfo, tree)
    local flags = buffer(0, 1):uint()
    local node = tree:add(f.flags, buffer(0, 1))
    for _, name in ipairs({ "flag_phase", "flag_acks", "flag_now", "flag_section" }) do
        node:add(f[name], buffer(0, 1))
    end
    tree:add_le(f.connection, buffer(1, 4))
    tree:add_le(f.number, buffer(5, 2))
    local found = open_packet(buffer, pinfo)
    seen[buffer(1, 4):le_uint()] = true
    local connection = string.format("%08x", buffer(1, 4):le_uint())
    if not found then
        pinfo.cols.info = string.format("Data to %s, %d bytes", connection, buffer:len() - HEADER_LEN)
        local tag = buffer:len() - 16
        if tag > HEADER_LEN then
            tree:add(f.sealed, buffer(HEADER_LEN, tag - HEADER_LEN))
            tree:add(f.tag, buffer(tag))
        else
            tree:add(f.tag, buffer(HEADER_LEN))
        end
        return
    end
    tree:add(f.number_full, buffer(5, 2), UInt64(found.number)):set_generated()
    local notes = {}
    if #found.content > 0 then
        local content = ByteArray.new(found.content, true):tvb("Muse content")
        local ok, failure = pcall(dissect_content, content, flags, tree, notes)
        if not ok then
            if failure ~= MALFORMED then
                error(failure)
            end
            tree:add_proto_expert_info(malformed, "the content breaks docs/protocol.md (or an unreliable channel is not in the preferences)")
            notes[#notes + 1] = "[Malformed]"
        end
    end
    pinfo.cols.info = string.format("Data to %s #%d %s", connection, found.number, table.concat(notes, ", "))
end

local function is_data(buffer)
    local first = buffer(0, 1):uint()
    return buffer:len() >= HEADER_LEN + 8 and first >= 0x80 and first % 8 == 0
end

function muse.dissector(buffer, pinfo, tree)
    if buffer:len() == 0 then
        return 0
    end
    local handshake = buffer:len() >= 33 and LENGTHS[buffer(0, 1):uint()] ~= nil
    if not handshake and not is_data(buffer) then
        return 0
    end
    pinfo.cols.protocol = "Muse"
    local node = tree:add(muse, buffer())
    if handshake then
        dissect_handshake(buffer, pinfo, node)
    else
        dissect_data(buffer, pinfo, node)
    end
    return buffer:len()
end

-- A handshake proves itself, and what follows between the same addresses belongs to it. A connection that moved is known by its id.
local function heuristic(buffer, pinfo, tree)
    local handshake = buffer:len() >= 33 and is_handshake(buffer)
    if not handshake and (buffer:len() < HEADER_LEN or not is_data(buffer) or not seen[buffer(1, 4):le_uint()]) then
        return false
    end
    pinfo.conversation = muse
    muse.dissector(buffer, pinfo, tree)
    return true
end

muse:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(muse)
