#include "repro/input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "connectors/files/files.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/stream/record.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice::repro {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

class EventReader {
 public:
  EventReader(std::uint64_t seed, const std::function<void(std::span<const Event>)>& take)
      : hasher_(HashKind::xxh3, Secret::from_seed(seed)), take_(take) {}

  void hand_on(std::span<const Record> records) {
    events_.clear();
    for (const Record& record : records) {
      const std::string_view line = record.text();
      const std::size_t tab = line.find('\t');
      if (tab == line.npos)
        events_.push_back({hasher_.digest(line), 0});
      else
        events_.push_back(
            {hasher_.digest(line.substr(tab + 1)), hasher_.digest(line.substr(0, tab)).lo});
    }
    if (!events_.empty()) take_(events_);
  }

 private:
  Hasher hasher_;
  const std::function<void(std::span<const Event>)>& take_;
  std::vector<Event> events_;
};

}  // namespace

void read_events(const std::string& path, std::uint64_t seed,
                 const std::function<void(std::span<const Event>)>& take) {
  FileSource source = FileSource::open(path, -1);
  const std::unique_ptr<Splitter> splitter = make_splitter(Format{});
  EventReader reader(seed, take);
  std::vector<char> buffer(kBuffer + kPaddingBytes);
  std::vector<Record> records;
  std::size_t held = 0;
  bool any = false;
  for (bool last = false; !last;) {
    if (held + kPaddingBytes == buffer.size()) buffer.resize(2 * buffer.size());
    const std::size_t count =
        source.read(std::span(buffer).subspan(held, buffer.size() - kPaddingBytes - held));
    last = count == 0;
    held += count;
    std::size_t used = 0, cut = 0;
    do {
      records.clear();
      cut = splitter->split({buffer.data() + used, held - used}, last, kBatchRecords, records);
      used += cut;
      any |= !records.empty();
      reader.hand_on(records);
    } while (cut > 0 && used < held);
    std::memmove(buffer.data(), buffer.data() + used, held - used);
    held -= used;
  }
  if (!any)
    throw BadParameters(fmt::format("--input '{}' is empty: give one event per line", path));
}

std::vector<Event> all_events(const std::string& path, std::uint64_t seed) {
  std::vector<Event> events;
  read_events(path, seed, [&](std::span<const Event> some) {
    events.insert(events.end(), some.begin(), some.end());
  });
  return events;
}

}  // namespace sluice::repro
