#include "connectors/files/positions.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "connectors/files/files.hpp"
#include "connectors/files/state_file.hpp"
#include "sluice/base/codec.hpp"
#include "sluice/base/error.hpp"

namespace sluice {
namespace {

constexpr std::string_view kOutputs = "outputs";
constexpr std::string_view kHeaders = "headers";
constexpr std::string_view kInputs = "inputs";
constexpr std::string_view kYears = "years";
constexpr std::uint8_t kYearsVersion = 1;
constexpr std::uint8_t kOutputsVersion = 2;
constexpr std::uint8_t kHeadersVersion = 1;
constexpr std::uint8_t kInputsVersion = 4;
constexpr std::uint8_t kNoOutput = 0xFF;
// More than a path can have, and more names than a command line holds.
constexpr std::uint64_t kMostText = 65536;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kMostInputs = std::uint64_t{1} << 22;

// False if the file ends before, or cannot be read.
bool read_at(int descriptor, std::uint64_t offset, std::span<char> out) {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

std::optional<Digest> digest_before(int descriptor, std::uint64_t offset, std::uint64_t count,
                                    const Hasher& hasher) {
  std::string bytes(count, '\0');
  if (!read_at(descriptor, offset - count, bytes)) return std::nullopt;
  return hasher.digest(bytes);
}

void encode(const std::string& text, Encoder& to) {
  const auto kept = std::span(text).first(std::min<std::size_t>(text.size(), kMostText));
  to.varint(kept.size());
  to.bytes(std::as_bytes(kept));
}

void encode(const FileEnd& end, Encoder& to) {
  to.varint(end.offset);
  to.varint(end.checked);
  to.u64(end.digest.lo);
  to.u64(end.digest.hi);
}

void refuse_if(bool wrong) {
  if (wrong)
    throw CorruptSnapshot("its sections of outputs and inputs have fields that no run has");
}

std::string decode_text(Decoder& from) {
  const std::uint64_t length = from.varint();
  refuse_if(length > kMostText || length > from.remaining());
  std::string text(length, '\0');
  from.bytes(std::as_writable_bytes(std::span(text)));
  refuse_if(text.find('\0') != std::string::npos);
  return text;
}

FileEnd decode_end(Decoder& from) {
  FileEnd end;
  end.offset = from.varint();
  end.checked = from.varint();
  end.digest.lo = from.u64();
  end.digest.hi = from.u64();
  refuse_if(end.offset > kMostBytes || end.checked > FileEnd::kMostChecked ||
            end.checked > end.offset || (end.checked == 0 && !(end.digest == Digest{})));
  return end;
}

bool decode_bool(Decoder& from) {
  const std::uint8_t value = from.u8();
  refuse_if(value > 1);
  return value == 1;
}

Packing decode_packing(Decoder& from) {
  const std::uint8_t packing = from.u8();
  refuse_if(packing >= kPackings);
  return static_cast<Packing>(packing);
}

void encode(const PackedSoFar& packed, Encoder& to) {
  to.u8(static_cast<std::uint8_t>(packed.packing));
  if (packed.packing == Packing::none) return;
  to.varint(packed.contents);
  to.u8(static_cast<std::uint8_t>(packed.last));
}

PackedSoFar decode_packed(Decoder& from) {
  PackedSoFar packed{.packing = decode_packing(from)};
  if (packed.packing == Packing::none) return packed;
  packed.contents = from.varint();
  packed.last = static_cast<char>(from.u8());
  refuse_if(packed.contents > kMostBytes || (packed.contents == 0 && packed.last != '\n'));
  return packed;
}

Section encode_outputs(const std::vector<OutputPosition>& outputs) {
  BytesEncoder to;
  to.u8(kOutputsVersion);
  to.varint(outputs.size());
  for (const OutputPosition& output : outputs) {
    encode(output.path, to);
    encode(output.end, to);
    encode(output.packed, to);
  }
  return {std::string(kOutputs), false, to.take()};
}

std::vector<OutputPosition> decode_outputs(Decoder& from) {
  const std::uint64_t count = from.varint();
  refuse_if(count > Positions::kMostOutputs);
  std::vector<OutputPosition> outputs;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string path = decode_text(from);
    refuse_if(std::ranges::any_of(outputs, [&](const auto& each) { return each.path == path; }));
    OutputPosition& output = outputs.emplace_back();
    output.path = std::move(path);
    output.end = decode_end(from);
    output.packed = decode_packed(from);
  }
  return outputs;
}

// One for each output, in their order. A section of its own, without which a state can be read.
Section encode_headers(const std::vector<OutputPosition>& outputs) {
  BytesEncoder to;
  to.u8(kHeadersVersion);
  for (const OutputPosition& output : outputs) {
    to.u8(static_cast<std::uint8_t>(output.header.kind));
    if (output.header.kind != WrittenHeader::Kind::known) continue;
    encode(output.header.shown, to);
    to.u64(output.header.digest.lo);
    to.u64(output.header.digest.hi);
  }
  return {std::string(kHeaders), false, to.take()};
}

bool has_known_header(const OutputPosition& output) {
  return output.header.kind != WrittenHeader::Kind::unknown;
}

std::vector<OutputPosition> decode_headers(Decoder& from, std::vector<OutputPosition> outputs) {
  for (OutputPosition& output : outputs) {
    const std::uint8_t kind = from.u8();
    refuse_if(kind > static_cast<std::uint8_t>(WrittenHeader::Kind::known));
    output.header.kind = static_cast<WrittenHeader::Kind>(kind);
    if (output.header.kind != WrittenHeader::Kind::known) continue;
    output.header.shown = decode_text(from);
    refuse_if(output.header.shown.size() > WrittenHeader::kMostShown);
    output.header.digest.lo = from.u64();
    output.header.digest.hi = from.u64();
  }
  refuse_if(std::ranges::none_of(outputs, has_known_header));
  return outputs;
}

void encode(const std::vector<InputPosition>& inputs, Encoder& to) {
  to.varint(inputs.size());
  for (const InputPosition& input : inputs) {
    encode(input.name, to);
    to.u8(input.regular);
    encode(input.end, to);
    to.varint(input.records);
    to.varint(input.inode);
    to.u8(input.drained);
    to.varint(input.open_bytes);
    to.u64(input.modified_ns);
    to.u8(static_cast<std::uint8_t>(input.packing));
    if (input.packing != Packing::none) to.varint(input.unpacked);
  }
}

std::vector<InputPosition> decode_inputs(Decoder& from, std::uint64_t most) {
  const std::uint64_t count = from.varint();
  refuse_if(count > most);
  std::vector<InputPosition> inputs;
  for (std::uint64_t i = 0; i < count; ++i) {
    InputPosition input;
    input.name = decode_text(from);
    input.regular = decode_bool(from);
    input.end = decode_end(from);
    input.records = from.varint();
    input.inode = from.varint();
    input.drained = decode_bool(from);
    input.open_bytes = from.varint();
    input.modified_ns = from.u64();
    refuse_if(input.name.empty());
    refuse_if(input.regular ? input.drained
                            : input.end != FileEnd{} || input.inode != 0 || input.modified_ns != 0);
    input.packing = decode_packing(from);
    if (input.packing != Packing::none) input.unpacked = from.varint();
    refuse_if(!input.regular && input.packing != Packing::none);
    const bool packed = input.packing != Packing::none;
    refuse_if(input.unpacked > kMostBytes);
    refuse_if(input.open_bytes > (packed ? input.unpacked : input.end.offset));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<std::byte> encode_run(const RunPosition& run) {
  BytesEncoder to;
  to.u8(kInputsVersion);
  encode(run.inputs, to);
  to.varint(run.current);
  to.u8(run.begun);
  for (const auto& output : run.outputs) to.u8(output.value_or(kNoOutput));
  encode(run.forgot, to);
  encode(run.shape, to);
  encode(run.others, to);
  return to.take();
}

RunPosition decode_run(Decoder& from, std::size_t outputs) {
  RunPosition run;
  run.inputs = decode_inputs(from, kMostInputs);
  run.current = from.varint();
  run.begun = decode_bool(from);
  refuse_if(run.inputs.empty() || run.current > run.inputs.size());
  for (std::size_t role = 0; role < kOutputRoles; ++role) {
    const std::uint8_t output = from.u8();
    if (output == kNoOutput) continue;
    const auto before = std::span(run.outputs).first(role);
    refuse_if(output != RunPosition::kNoFile &&
              (output >= outputs || std::ranges::count(before, std::optional(output)) > 0));
    run.outputs[role] = output;
  }
  run.forgot = decode_text(from);
  run.shape = decode_text(from);
  run.others = decode_inputs(from, RunPosition::kMostOthers);
  refuse_if(!std::ranges::all_of(run.others, &InputPosition::regular));
  return run;
}

std::vector<std::byte> encode_years(const EventClock& clock) {
  BytesEncoder to;
  to.u8(kYearsVersion);
  clock.encode(to);
  clock.encode_keys(to);
  return to.take();
}

EventClock decode_years(Decoder& from) {
  EventClock clock;
  clock.decode(from);
  clock.decode_keys(from);
  return clock;
}

template <class Decode>
auto decode_all(std::span<const std::byte> bytes, std::uint8_t version, Decode decode) {
  BytesDecoder from(bytes);
  refuse_if(from.u8() != version);
  auto result = decode(from);
  refuse_if(from.remaining() != 0);
  return result;
}

}  // namespace

FileEnd FileEnd::at(int descriptor, std::uint64_t offset, const Hasher& hasher) {
  FileEnd end{.offset = offset, .checked = 0, .digest = {}};
  const std::uint64_t count = std::min(offset, kMostChecked);
  const Descriptor file = readable(descriptor);
  if (!file || count == 0) return end;
  if (const auto digest = digest_before(file.number(), offset, count, hasher)) {
    end.checked = count;
    end.digest = *digest;
  }
  return end;
}

bool FileEnd::matches(int descriptor, const Hasher& hasher) const {
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) < offset)
    return false;
  if (checked == 0) return true;
  const Descriptor file = readable(descriptor);
  if (!file) throw IoError("cannot read a file that the state knows, to compare it", errno);
  const auto found = digest_before(file.number(), offset, checked, hasher);
  return found && *found == digest;
}

WrittenHeader WrittenHeader::of(std::string_view header, const Hasher& hasher) {
  WrittenHeader written{.kind = Kind::known,
                        .shown = std::string(header.substr(0, kMostShown)),
                        .digest = hasher.digest(header)};
  // decode_text() refuses it.
  std::ranges::replace(written.shown, '\0', ' ');
  return written;
}

void Positions::set_output(OutputPosition output) {
  std::erase_if(outputs, [&](const OutputPosition& each) { return each.path == output.path; });
  if (outputs.size() == kMostOutputs) outputs.erase(outputs.begin());
  outputs.push_back(std::move(output));
}

bool is_positions(std::string_view section_name) {
  return section_name == kOutputs || section_name == kHeaders || section_name == kInputs ||
         section_name == kYears;
}

Sections sections_of(const Positions& positions) {
  Sections sections;
  if (!positions.outputs.empty()) sections.push_back(encode_outputs(positions.outputs));
  if (std::ranges::any_of(positions.outputs, has_known_header))
    sections.push_back(encode_headers(positions.outputs));
  if (positions.run)
    sections.push_back({std::string(kInputs), positions.unfinished(), encode_run(*positions.run)});
  if (positions.years)
    sections.push_back(
        {std::string(kYears), positions.unfinished(), encode_years(*positions.years)});
  return sections;
}

Snapshot load_state(const std::filesystem::path& file) {
  Snapshot state = load_snapshot_file(file, default_memory(), is_positions);
  try {
    positions_in(state.sections);
  } catch (const CorruptSnapshot& error) {
    throw CorruptSnapshot(
        fmt::format("state file '{}' is refused: {}", file.string(), error.what()));
  }
  return state;
}

Positions positions_in(const Sections& sections) {
  Positions positions;
  const auto with_name = [&](std::string_view name) {
    return std::ranges::find(sections, name, &Section::name);
  };
  if (const auto found = with_name(kOutputs); found != sections.end())
    positions.outputs = decode_all(found->bytes, kOutputsVersion, decode_outputs);
  if (const auto found = with_name(kHeaders); found != sections.end())
    positions.outputs = decode_all(found->bytes, kHeadersVersion, [&](Decoder& from) {
      return decode_headers(from, std::move(positions.outputs));
    });
  if (const auto found = with_name(kInputs); found != sections.end())
    positions.run = decode_all(found->bytes, kInputsVersion, [&](Decoder& from) {
      return decode_run(from, positions.outputs.size());
    });
  if (const auto found = with_name(kYears); found != sections.end())
    positions.years = decode_all(found->bytes, kYearsVersion, decode_years);
  return positions;
}

}  // namespace sluice
