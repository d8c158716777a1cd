// A consumer that delivers every event at least once and hardly ever twice, and survives a crash.
//
// An event is claimed, delivered and confirmed. The keys of each batch are then written to a
// journal, together with how far the input was read. After a crash the state is the snapshot and
// what the journal has beyond it. A crash before a batch is in the journal delivers again what was
// already delivered of that batch.
#include <fcntl.h>
#include <unistd.h>

#include <sluice/sluice.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;
using sluice::ClaimAnswer;
using sluice::Claims;

// A file, written and synced. (A real one checks for each call that failed whether to try again.)
class File final : public sluice::Encoder {
 public:
  File(const fs::path& path, int flags)
      : fd_(::open(path.c_str(), flags | O_WRONLY | O_CREAT, 0644)) {
    if (fd_ < 0) throw sluice::IoError("cannot open the state", errno);
  }
  ~File() override { ::close(fd_); }
  void bytes(std::span<const std::byte> data) override {
    if (::write(fd_, data.data(), data.size()) != static_cast<ssize_t>(data.size()))
      throw sluice::IoError("cannot write the state", errno);
  }
  void sync() {
    if (::fsync(fd_) != 0) throw sluice::IoError("cannot sync the state", errno);
  }

 private:
  int fd_;
};

// A new or renamed file survives a power cut when its folder was synced as well.
void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) throw sluice::IoError("cannot sync the folder of the state", error);
}

std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> read((std::istreambuf_iterator<char>(file)), {});
  const auto bytes = std::as_bytes(std::span(read));
  return {bytes.begin(), bytes.end()};
}

class Consumer {
 public:
  explicit Consumer(const fs::path& folder)
      : folder_(folder), snapshot_(folder / "seen.snapshot"), journal_(folder / "seen.journal") {
    recover();
  }

  std::size_t offset() const { return offset_; }

  // Delivers each event once, and makes the batch durable at its end.
  void consume(std::span<const std::string_view> events, void (*deliver)(std::string_view)) {
    std::vector<sluice::Digest> delivered;
    for (const std::string_view event : events) {
      const sluice::Digest key = judge_->hasher().digest(event);
      const Claims::Request request{.key = key, .token = {1, 1}, .lease = 30'000'000'000};
      if (judge_->claim(request) == ClaimAnswer::claimed) {
        deliver(event);
        judge_->confirm(request);
        delivered.push_back(key);
      }
      ++offset_;
    }
    File file(journal_, O_APPEND);
    writer_->append(delivered, {}, {where()}, file);
    file.sync();
    if (sluice::compaction_pays(writer_->bytes(), fs::file_size(snapshot_))) compact();
  }

 private:
  // How far the input was read travels in the same record as the keys.
  sluice::Section where() const {
    sluice::BytesEncoder bytes;
    bytes.u64(offset_);
    return {.name = "offset", .bytes = bytes.take()};
  }
  void resume(const sluice::Sections& sections) {
    for (const sluice::Section& section : sections)
      if (section.name == "offset") offset_ = sluice::BytesDecoder(section.bytes).u64();
  }
  static bool knows(std::string_view section) { return section == "offset"; }

  void recover() {
    const sluice::JudgeOptions options{.claims = 1000};
    if (!fs::exists(snapshot_)) {
      judge_ = std::make_unique<sluice::Judge>(
          sluice::Hasher(sluice::HashKind::xxh3, sluice::Secret::random()),
          sluice::make_filter("growing", {.fpr = 1e-6}), options);
      return compact();
    }
    const std::vector<std::byte> bytes = bytes_of(snapshot_);
    sluice::BytesDecoder from(bytes);
    auto loaded = sluice::Judge::load(from, options, sluice::default_memory(), knows);
    judge_ = std::move(loaded.judge);
    resume(loaded.sections);
    const std::vector<std::byte> events = bytes_of(journal_);
    sluice::BytesDecoder journal(events);
    try {
      const sluice::JournalEnd end = sluice::read_journal(
          journal, loaded.identity,
          [&](const sluice::JournalRecord& record) {
            if (judge_->replay(record.digests, record.times) < record.digests.size())
              throw sluice::NoMemory("there is no memory for the keys of the journal");
            resume(record.sections);
          },
          knows);
      if (end.bytes == 0) return compact();  // it has no head: it cannot be continued
      fs::resize_file(journal_, end.bytes);  // what a crash tore off
      writer_ = std::make_unique<sluice::JournalWriter>(end);
    } catch (const sluice::JournalGap&) {
      // After a crash in compact() it belongs to the snapshot before this one, which has all of it.
      // It is kept for the other case: somebody put an old snapshot here.
      fs::rename(journal_, journal_.string() + ".unused");
      compact();
    }
  }

  // A new snapshot, and an empty journal behind it. Between the two steps the old journal names a
  // snapshot that is gone: recovery sees that. The snapshot must be durable under its name before
  // the old journal goes.
  void compact() {
    const fs::path fresh = snapshot_.string() + ".new";
    std::uint64_t identity = 0;
    {
      File file(fresh, O_TRUNC);
      identity = judge_->save(file, {}, {where()});
      file.sync();
    }
    fs::rename(fresh, snapshot_);
    sync_folder(folder_);
    File file(journal_, O_TRUNC);
    writer_ = std::make_unique<sluice::JournalWriter>(identity, file);
    file.sync();
    sync_folder(folder_);
  }

  fs::path folder_, snapshot_, journal_;
  std::unique_ptr<sluice::Judge> judge_;
  std::unique_ptr<sluice::JournalWriter> writer_;
  std::size_t offset_ = 0;
};

int main(int argc, char** argv) {
  constexpr std::array<std::string_view, 8> kInput = {"order 1", "order 2", "order 1", "order 3",
                                                      "order 2", "order 4", "order 1", "order 5"};
  const fs::path folder = argc > 1 ? argv[1] : fs::temp_directory_path();
  try {
    for (int run = 1; run <= 3; ++run) {
      // A consumer that is gone after two batches of two: nothing is saved at its end.
      Consumer consumer(folder);
      std::printf("run %d starts at event %zu\n", run, consumer.offset());
      for (int batch = 0; batch < 2 && consumer.offset() < kInput.size(); ++batch)
        consumer.consume(
            std::span(kInput).subspan(consumer.offset(), 2), [](std::string_view event) {
              std::printf("  deliver %.*s\n", static_cast<int>(event.size()), event.data());
            });
    }
    for (const char* name : {"seen.snapshot", "seen.journal"}) fs::remove(folder / name);
  } catch (const sluice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
