-- Dissector for MUSE-RP v1, from docs/muse-rp.md.
--
-- A conversation is recognised by an INIT with a ChannelInfo, which begins each of the two channels; where that is not in the capture, use "Decode As"
-- with `muse_rp`.

local rp = Proto("muse_rp", "MUSE-RP v1")

local f = {
    seq = ProtoField.uint32("muse_rp.seq", "Sequence number"),
    ack = ProtoField.uint32("muse_rp.ack", "Ack number"),
    flags = ProtoField.uint8("muse_rp.flags", "Flags", base.HEX),
    flag_ack = ProtoField.bool("muse_rp.flags.ack", "ACK", 8, nil, 1),
    flag_init = ProtoField.bool("muse_rp.flags.init", "INIT", 8, nil, 2),
    flag_end = ProtoField.bool("muse_rp.flags.end", "END", 8, nil, 4),
    flag_ping = ProtoField.bool("muse_rp.flags.ping", "PING", 8, nil, 8),
    type = ProtoField.uint16("muse_rp.type", "Type"),
    payload = ProtoField.bytes("muse_rp.payload", "Payload"),
    reliable_port = ProtoField.uint32("muse_rp.info.reliable_port", "Reliable port of the sender"),
    partial_port = ProtoField.uint32("muse_rp.info.partial_port", "Partial port of the sender"),
    window = ProtoField.uint32("muse_rp.info.window", "Window"),
    percent = ProtoField.uint32("muse_rp.info.percent", "Reliability in per cent"),
    their_reliable_port = ProtoField.uint32("muse_rp.info.their_reliable_port", "Reliable port of the receiver"),
    their_partial_port = ProtoField.uint32("muse_rp.info.their_partial_port", "Partial port of the receiver"),
    id = ProtoField.uint32("muse_rp.info.id", "Connection id"),
    answer = ProtoField.bool("muse_rp.ping.answer", "Answer"),
}
rp.fields = f
local malformed = ProtoExpert.new("muse_rp.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
rp.experts = { malformed }

local HEADER_LEN, INFO_LEN, LEN_MAX = 11, 28, 1511
local ACK, INIT, END, PING = 1, 2, 4, 8

local function has(flags, flag)
    return math.floor(flags / flag) % 2 == 1
end

-- In the order in which receivers look at flags.
local function name_of(flags)
    if has(flags, INIT) then
        return "INIT"
    elseif has(flags, END) then
        return "END"
    elseif has(flags, PING) then
        return "PING"
    elseif has(flags, ACK) then
        return "ACK"
    end
    return "Data"
end

local function dissect_info(buffer, tree)
    local info = tree:add(rp, buffer, "ChannelInfo")
    local places = { f.reliable_port, f.partial_port, f.window, f.percent, f.their_reliable_port, f.their_partial_port, f.id }
    for index, place in ipairs(places) do
        info:add_le(place, buffer(4 * (index - 1), 4))
    end
end

function rp.dissector(buffer, pinfo, tree)
    local len = buffer:len()
    if len < HEADER_LEN or len > LEN_MAX then
        return 0
    end
    local flags = buffer(8, 1):uint()
    local name, kind = name_of(flags), buffer(9, 2):le_uint()
    pinfo.cols.protocol = "MUSE-RP"
    pinfo.cols.info = string.format("%s seq=%u ack=%u", name, buffer(0, 4):le_uint(), buffer(4, 4):le_uint())
    local node = tree:add(rp, buffer())
    node:add_le(f.seq, buffer(0, 4))
    node:add_le(f.ack, buffer(4, 4))
    local bits = node:add(f.flags, buffer(8, 1))
    for _, flag in ipairs({ f.flag_ack, f.flag_init, f.flag_end, f.flag_ping }) do
        bits:add(flag, buffer(8, 1))
    end
    node:add_le(f.type, buffer(9, 2))
    if name == "Data" then
        pinfo.cols.info:append(string.format(" type=%u len=%u", kind, len - HEADER_LEN))
    end
    if name == "INIT" and len == HEADER_LEN + INFO_LEN then
        dissect_info(buffer(HEADER_LEN, INFO_LEN), node)
    elseif name == "INIT" and len ~= HEADER_LEN then
        node:add_proto_expert_info(malformed, "an INIT has a ChannelInfo or nothing")
    elseif name == "PING" and len > HEADER_LEN then
        node:add(f.answer, buffer(HEADER_LEN, 1), buffer(HEADER_LEN, 1):uint() ~= 0)
        pinfo.cols.info:append(buffer(HEADER_LEN, 1):uint() ~= 0 and " answer" or " question")
    elseif name == "PING" then
        node:add_proto_expert_info(malformed, "a PING has a payload")
    elseif len > HEADER_LEN then
        node:add(f.payload, buffer(HEADER_LEN))
    end
    return len
end

-- An INIT of the first three steps: ports are ports, the window and the percentage are within their limits.
local function heuristic(buffer, pinfo, tree)
    if buffer:len() ~= HEADER_LEN + INFO_LEN or buffer(8, 3):le_uint() ~= INIT then
        return false
    end
    for _, at in ipairs({ 0, 4, 8, 16, 20 }) do
        if buffer(HEADER_LEN + at, 4):le_uint() > 65535 then
            return false
        end
    end
    if buffer(HEADER_LEN + 12, 4):le_uint() > 100 or buffer(HEADER_LEN, 4):le_uint() == 0 then
        return false
    end
    pinfo.conversation = rp
    rp.dissector(buffer, pinfo, tree)
    return true
end

rp:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(rp)
