#include "sluice/stream/chunk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "sluice/base/error.hpp"
#include "sluice/stream/csv.hpp"

namespace sluice {
namespace {

// A buffer that grew for one long record is given back; one that long ones need often is not.
constexpr std::size_t kKeepBytes = std::size_t{1} << 24;

// Up to this many bytes are copied from chunk to chunk; for more, the buffers are swapped.
constexpr std::size_t kCopyBytes = kReadBytes;

bool has_header(const Format& format) {
  return format.header && (format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv);
}

// A header keeps its byte order mark, and so does a line that is taken as a whole, for any bytes are
// a line. Elsewhere the mark would be taken for a part of the first field.
bool skips_mark(const DedupOptions& options) {
  switch (options.format.kind) {
    case Format::Kind::lines:
    case Format::Kind::nul:
      return !options.keys.empty() || options.event_time;
    case Format::Kind::csv:
    case Format::Kind::tsv:
      return !options.format.header;
    case Format::Kind::json:
      break;
  }
  return true;
}

void skip_mark(std::vector<Record>& records) {
  Record& first = records.front();
  if (!first.text().starts_with(kByteOrderMark)) return;
  first.data += kByteOrderMark.size();
  first.body -= kByteOrderMark.size();
  first.whole -= kByteOrderMark.size();
  if (first.whole == 0) records.erase(records.begin());
}

// What is measured is all but the last byte of the terminator: that much of a record can be in the
// buffer before its end is known, so that the reads' sizes make no difference.
std::size_t count_before_long(std::span<const Record> records, std::uint64_t most) {
  const auto is_long = [most](const Record& record) {
    return record.whole - (record.whole > record.body ? 1 : 0) > most;
  };
  return static_cast<std::size_t>(std::ranges::find_if(records, is_long) - records.begin());
}

// Puts the flag of a key before the error message about it.
template <class Act>
auto naming(const std::string& flag, Act act) {
  try {
    return act();
  } catch (const BadKey& error) {
    throw BadParameters(fmt::format("{} {}", flag, error.what()));
  }
}

// How messages name what gives the key or the time.
std::string field_of(KeyStyle::By by, const char* fields, const char* bytes) {
  switch (by) {
    case KeyStyle::By::regex:
    case KeyStyle::By::time_group:
      return "`key_regex`";
    case KeyStyle::By::bytes:
      return bytes;
    case KeyStyle::By::fields:
      break;
  }
  return fields;
}

}  // namespace

void ReadBuffer::reserve(std::size_t size, std::size_t kept) {
  if (size <= size_) return;
  auto bytes = std::make_unique_for_overwrite<char[]>(size + kPaddingBytes);
  if (kept > 0) std::memcpy(bytes.get(), bytes_.get(), kept);
  // The padding may be read: it must be something.
  std::memset(bytes.get() + size, 0, kPaddingBytes);
  bytes_ = std::move(bytes);
  size_ = size;
}

void ReadBuffer::release() noexcept {
  bytes_.reset();
  size_ = 0;
}

void Chunk::clear() {
  bytes_read = 0;
  open_bytes = 0;
  ended_quoted = false;
  records.clear();
  header = Header::none;
  parts.clear();
  faults.clear();
  date.reset();
  unclear.reset();
  another.reset();
  judged = 0;
  too_long = false;
  error = nullptr;
}

ChunkReader::ChunkReader(const DedupOptions& options)
    : splitter_(make_splitter(options.format)),
      most_record_bytes_(options.most_record_bytes),
      has_header_(has_header(options.format)),
      skips_mark_(skips_mark(options)) {}

void ChunkReader::start(ByteSource& source, std::uint64_t offset) {
  source_ = &source;
  splitter_->reset(offset == 0);
  header_due_ = has_header_ && offset == 0;
  mark_due_ = skips_mark_ && offset == 0;
  cut_to_ = offset;
  held_ = 0;
  placed_ = has_records_ = false;
}

// What is held comes to the front of the chunk. A record longer than a read is not copied once a
// read: the buffers change places.
void ChunkReader::place(Chunk& chunk) {
  if (placed_) return;
  if (held_ > kCopyBytes) {
    std::swap(chunk.buffer, carry_);
  } else {
    if (chunk.buffer.size() > kKeepBytes) chunk.buffer.release();
    chunk.buffer.reserve(2 * kReadBytes, 0);
    if (held_ > 0) std::memcpy(chunk.buffer.data(), carry_.data(), held_);
    if (carry_.size() > kKeepBytes) carry_.release();
  }
  placed_ = true;
}

std::size_t ChunkReader::read(Chunk& chunk) {
  place(chunk);
  if (chunk.buffer.size() - held_ < kReadBytes)
    chunk.buffer.reserve(2 * chunk.buffer.size(), held_);
  const std::size_t got = source_->read({chunk.buffer.data() + held_, kReadBytes});
  chunk.bytes_read = got;
  held_ += got;
  return got;
}

void ChunkReader::cut(Chunk& chunk, bool last) {
  place(chunk);
  const std::string_view bytes(chunk.buffer.data(), held_);
  const std::size_t used = splitter_->split(bytes, last, kChunkRecords, chunk.records);
  const std::size_t sound = held_ <= most_record_bytes_
                                ? chunk.records.size()
                                : count_before_long(chunk.records, most_record_bytes_);
  if (!chunk.records.empty() && chunk.records.back().body == chunk.records.back().whole)
    chunk.open_bytes = chunk.records.back().whole;
  chunk.ended_quoted = last && splitter_->ended_quoted();
  has_records_ = chunk.records.size() == kChunkRecords;
  chunk.too_long = sound < chunk.records.size();
  chunk.records.resize(sound);
  if (mark_due_ && sound > 0) {
    skip_mark(chunk.records);
    mark_due_ = false;
  }
  if (header_due_ && sound > 0) {
    chunk.header = Chunk::Header::again;  // unless the caller knows better
    header_due_ = false;
  }
  placed_ = false;
  chunk.end = cut_to_ += used;
  held_ -= used;
  if (used == 0) {
    std::swap(chunk.buffer, carry_);
  } else {
    carry_.reserve(std::max(held_, kReadBytes), 0);
    if (held_ > 0) std::memcpy(carry_.data(), bytes.data() + used, held_);
  }
}

ChunkKeys::ChunkKeys(const DedupOptions& options, const Hasher& hasher, bool digests)
    : hasher_(hasher),
      digests_(digests),
      keeps_(options.tap_keys),
      merges_(!options.infer),
      key_field_(field_of(options.key_style.by, "`key`", "`key_bytes`")),
      time_field_(field_of(options.time_by, "`event_time`", "`time_bytes`")),
      extractor_(naming(
          key_field_,
          [&] { return make_key_extractor(options.format, options.keys, options.key_style); })),
      keys_(kBatchRecords) {
  if (options.event_time)
    naming(time_field_, [&] {
      event_times_.emplace(options.format, *options.event_time, options.time_format, options.days,
                           KeyStyle{.by = options.time_by, .trim = options.key_style.trim});
    });
  times_of_keys_ = options.event_time && options.time_by == KeyStyle::By::time_group;
}

void ChunkKeys::set_header(const Record& header, const std::string& source) {
  naming(source + ": " + key_field_, [&] { extractor_->set_header(header); });
  if (event_times_) naming(source + ": " + time_field_, [&] { event_times_->set_header(header); });
}

void ChunkKeys::prepare(Chunk& chunk) {
  const std::size_t count = chunk.records.size();
  if (chunk.status.size() < count) {
    chunk.status.resize(count);
    chunk.digests.resize(count);
    chunk.verdicts.resize(count);
    chunk.late = std::make_unique<bool[]>(count);
    if (event_times_) chunk.times.resize(count);
    if (keeps_) chunk.keys.resize(count);
  }
  if (keeps_) chunk.key_bytes = std::make_unique<std::pmr::monotonic_buffer_resource>();
  for (std::size_t begin = chunk.header == Chunk::Header::none ? 0 : 1; begin < count;
       begin += kBatchRecords)
    prepare_part(chunk, begin, std::min(kBatchRecords, count - begin));
}

void ChunkKeys::prepare_part(Chunk& chunk, std::size_t begin, std::size_t count) {
  const auto records = std::span<const Record>(chunk.records).subspan(begin, count);
  const auto status = std::span(chunk.status).subspan(begin, count);
  const auto keys = std::span(keys_).first(count);
  const auto times =
      event_times_ ? std::span(chunk.times).subspan(begin, count) : std::span<Nanoseconds>();
  std::size_t keyed = extractor_->extract(records, keys, status);
  if (event_times_)
    keyed = times_of_keys_ ? event_times_->read_all(extractor_->times(), times, status)
                           : event_times_->extract(records, times, status);
  if (keyed < count) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (status[i] != KeyStatus::keyed) continue;
      if (event_times_) times[next] = times[i];
      keys[next++] = keys[i];
    }
  }
  if (digests_) hasher_.digest(keys.first(keyed), std::span(chunk.digests).subspan(begin, keyed));
  if (keeps_) keep(keys.first(keyed), begin, chunk);
  if (keyed < count) explain(chunk, begin, count);
  if (event_times_ && !timed_) look_for_date(chunk, begin, count);
  if (keyed == count && merges_ && !chunk.parts.empty()) {
    Chunk::Part& before = chunk.parts.back();
    if (before.keyed == before.count && before.count + count <= kJudgeRecords) {
      before.count = before.keyed += count;
      return;
    }
  }
  chunk.parts.push_back({begin, count, keyed});
}

// Keys that are no part of a record are copied: their place is used again for the next batch.
void ChunkKeys::keep(std::span<const std::string_view> keys, std::size_t begin, Chunk& chunk) {
  const char* const from = chunk.buffer.data();
  const auto in_buffer = [&](std::string_view key) {
    return std::less_equal<>()(from, key.data()) &&
           std::less<>()(key.data(), from + chunk.buffer.size());
  };
  std::size_t outside = 0;
  for (const std::string_view key : keys) outside += in_buffer(key) ? 0 : key.size();
  char* to = outside == 0 ? nullptr : static_cast<char*>(chunk.key_bytes->allocate(outside, 1));
  std::string_view* kept = chunk.keys.data() + begin;
  for (const std::string_view key : keys) {
    *kept++ = in_buffer(key) || key.empty() ? key : std::string_view(to, key.size());
    if (kept[-1].data() == key.data()) continue;
    std::memcpy(to, key.data(), key.size());
    to += key.size();
  }
}

// After the digests: the keys are lost.
void ChunkKeys::look_for_date(Chunk& chunk, std::size_t begin, std::size_t count) {
  const auto status = std::span(chunk.status).subspan(begin, count);
  const auto first = std::ranges::find_if(status, [](KeyStatus each) {
    return each == KeyStatus::keyed || each == KeyStatus::day_only;
  });
  for (auto each = status.begin(); each != first && !chunk.another; ++each) {
    if (*each != KeyStatus::malformed) continue;
    const std::size_t at = begin + static_cast<std::size_t>(each - status.begin());
    if (std::string why = event_times_->why_another(chunk.records[at]); !why.empty())
      chunk.another = {at, std::move(why)};
  }
  timed_ = first != status.end();
  if (!timed_) return;
  const std::size_t at = begin + static_cast<std::size_t>(first - status.begin());
  if (std::string why = event_times_->why_day(chunk.records[at]); !why.empty())
    chunk.date = {at, std::move(why)};
  if (std::string why = event_times_->why_unclear(chunk.records[at]); !why.empty())
    chunk.unclear = {at, std::move(why)};
}

// After the digests: the keys are lost.
void ChunkKeys::explain(Chunk& chunk, std::size_t begin, std::size_t count) {
  for (std::size_t i = begin; i < begin + count && chunk.faults.size() < kMostFaults; ++i) {
    if (chunk.status[i] == KeyStatus::keyed) continue;
    std::string reason = extractor_->why_not(chunk.records[i]);
    if (reason.empty() && event_times_) reason = event_times_->why_not(chunk.records[i]);
    chunk.faults.push_back({i, std::move(reason)});
  }
}

}  // namespace sluice
