-- Dissector for relay protocol v1, from docs/relay-v1.md.
--
-- UDP is recognised by its two lengths, TCP by the address that the server gives first; where that is not in the capture, use "Decode As" with `muse_relay`.

local relay = Proto("muse_relay", "Muse Relay v1")

local AFFECTING = { [0] = "broadcast", [1] = "list", [2] = "unicast", [3] = "state", [4] = "reset" }
local f = {
    length = ProtoField.uint16("muse_relay.length", "Length"),
    again = ProtoField.uint16("muse_relay.length_again", "Length again"),
    control = ProtoField.uint8("muse_relay.control", "Control", base.HEX),
    through = ProtoField.uint8("muse_relay.control.through", "Through", base.DEC, nil, 0xF0),
    affecting = ProtoField.uint8("muse_relay.control.affecting", "Affecting", base.DEC, AFFECTING, 0x0F),
    group = ProtoField.bool("muse_relay.control.group", "Group", 8, nil, 1),
    unicast = ProtoField.bool("muse_relay.control.unicast", "Unicast", 8, nil, 2),
    discard = ProtoField.bool("muse_relay.control.discard", "Discard", 8, nil, 8),
    type = ProtoField.uint8("muse_relay.type", "Type"),
    time = ProtoField.uint32("muse_relay.time", "Time or tick"),
    addr = ProtoField.uint8("muse_relay.addr", "Address"),
    data = ProtoField.bytes("muse_relay.data", "Data"),
}
relay.fields = f
local malformed = ProtoExpert.new("muse_relay.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
relay.experts = { malformed }

local UDP_HEADER, UDP_MAX, TCP_HEADER = 11, 1432, 5
-- What Wireshark calls the ports of UDP.
local UDP_PORTS = 3

local function dissect_udp(buffer, pinfo, tree)
    local len = buffer:len()
    if len < UDP_HEADER then
        return 0
    end
    local control, addr = buffer(3, 1):uint(), buffer(10, 1):uint()
    local unicast = math.floor(control / 2) % 2 == 1
    pinfo.cols.protocol = "Relay v1"
    pinfo.cols.info = string.format("%s type=%u time=%u %s=%u len=%u", unicast and "Unicast" or "Broadcast", buffer(2, 1):uint(),
        buffer(4, 4):le_uint(), unicast and "to" or "from", addr, len - UDP_HEADER)
    local node = tree:add(relay, buffer())
    node:add_le(f.length, buffer(0, 2))
    node:add(f.type, buffer(2, 1))
    local bits = node:add(f.control, buffer(3, 1))
    for _, flag in ipairs({ f.through, f.group, f.unicast, f.discard }) do
        bits:add(flag, buffer(3, 1))
    end
    node:add_le(f.time, buffer(4, 4))
    node:add_le(f.again, buffer(8, 2))
    node:add(f.addr, buffer(10, 1))
    if len > UDP_HEADER then
        node:add(f.data, buffer(UDP_HEADER))
    end
    local length = buffer(0, 2):le_uint()
    if length ~= buffer(8, 2):le_uint() or length ~= len - UDP_HEADER then
        node:add_proto_expert_info(malformed, "the lengths are not those of the data")
    end
    return len
end

local function tcp_length(buffer, _, at)
    return TCP_HEADER + buffer(at, 2):le_uint()
end

local function dissect_packet(buffer, pinfo, tree)
    local affecting = buffer(2, 1):uint() % 16
    local node = tree:add(relay, buffer(), string.format("Muse Relay v1: %s, %u bytes", AFFECTING[affecting] or "unused", buffer:len() - TCP_HEADER))
    node:add_le(f.length, buffer(0, 2))
    local bits = node:add(f.control, buffer(2, 1))
    bits:add(f.through, buffer(2, 1))
    bits:add(f.affecting, buffer(2, 1))
    node:add_le(f.again, buffer(3, 2))
    if buffer:len() > TCP_HEADER then
        node:add(f.data, buffer(TCP_HEADER))
    end
    if buffer(0, 2):le_uint() ~= buffer(3, 2):le_uint() then
        node:add_proto_expert_info(malformed, "the two lengths differ")
    end
    pinfo.cols.protocol = "Relay v1"
    pinfo.cols.info = "TCP " .. (AFFECTING[affecting] or "unused")
    return buffer:len()
end

function relay.dissector(buffer, pinfo, tree)
    if pinfo.port_type == UDP_PORTS then
        return dissect_udp(buffer, pinfo, tree)
    end
    dissect_tcp_pdus(buffer, tree, TCP_HEADER, tcp_length, dissect_packet)
    return buffer:len()
end

-- Two lengths that agree with each other and with the datagram, and an address that somebody can have.
local function udp_heuristic(buffer, pinfo, tree)
    local len = buffer:len()
    if len < UDP_HEADER or len > UDP_MAX or buffer(10, 1):uint() == 0 then
        return false
    end
    local length = buffer(0, 2):le_uint()
    if length ~= len - UDP_HEADER or length ~= buffer(8, 2):le_uint() then
        return false
    end
    dissect_udp(buffer, pinfo, tree)
    return true
end

-- The address that opens a connection.
local function tcp_heuristic(buffer, pinfo, tree)
    if buffer:len() < 6 or buffer(0, 4):le_uint() ~= 0x01000001 or buffer(4, 1):uint() ~= 0 or buffer(5, 1):uint() == 0 then
        return false
    end
    pinfo.conversation = relay
    relay.dissector(buffer, pinfo, tree)
    return true
end

relay:register_heuristic("udp", udp_heuristic)
relay:register_heuristic("tcp", tcp_heuristic)
DissectorTable.get("udp.port"):add_for_decode_as(relay)
DissectorTable.get("tcp.port"):add_for_decode_as(relay)
