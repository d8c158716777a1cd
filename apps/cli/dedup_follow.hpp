// `sluice dedup --follow`: inputs that are read to their ends and then waited for, as `tail -F` does.
//
// A file is known by its name. If the name leads to another file (rotation), the rest of the old one is read
// first, then the new one from its beginning, and before it those that had the name in between and are beside it
// under others (dedup_between.hpp). A file that is shorter than what was read of it, or has other
// bytes there (truncation), is read from its beginning. One that is not there is waited for. A record at the
// end of a file is judged when its terminator comes, or when the file has been replaced.
//
// Compressed files are refused: their bytes cannot be read on from where they ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connectors/files/files.hpp"
#include "connectors/files/positions.hpp"
#include "dedup_between.hpp"
#include "dedup_request.hpp"
#include "dedup_resume.hpp"
#include "sluice/stream/dedup.hpp"

namespace sluice::cli {

// Takes the files that are not there out of the request and returns them. Throws BadParameters for what cannot
// be followed.
std::vector<std::string> take_missing(DedupRequest& request);

// FileSource::open for a file that is to be followed. Throws BadParameters also for a compressed one.
FileSource open_followed(const std::string& file, int wake, const DedupRequest& request);

class Follow {
 public:
  // All must outlive this. Files that appear are added to `request` and `inputs`.
  struct Parts {
    DedupRequest& request;
    std::vector<FileSource>& inputs;
    Resume& resume;
    Dedup& dedup;
    const Hasher& hasher;
    std::vector<FileIdentity> outputs;
    int wake;
  };
  // `once`: inputs that find_rotated() added. They are read to their ends and not followed.
  Follow(const Parts& parts, std::vector<std::string> missing, const std::vector<bool>& once);

  // Reads until `between` says no. It is called as by Dedup::run, and about once per second in any case.
  void run(const std::function<bool()>& between);

  // The input that is being read, or was last, and how far it is judged.
  std::size_t current() const noexcept { return current_; }
  SourcePosition position() const;
  // Whether files were replaced, truncated or found since saved() was called last. The state should know them
  // before they are rotated again.
  bool has_changed() const noexcept { return changed_; }
  void saved() noexcept { changed_ = false; }
  // Files that were rotated, or were not read to their ends since they came, with what is left of them: names and
  // bytes. After run().
  std::vector<std::string> unread() const;
  // Files that may have come between two looks and were not read, as a warning has said.
  const std::vector<std::string>& unsure() const noexcept { return unsure_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct Followed {
    SourcePosition position = {};            // how far it is judged
    FileEnd end = {};                        // of what is judged
    std::uint64_t seen = 0;                  // its size when it was last read to its end
    FileEnd read = {};                       // of what was read, which may be more than is judged
    bool once = false;                       // read to its end, and not followed
    bool replaced = false;                   // its name leads to another input
    bool between = false;                    // it was never seen under its name
    bool gone = false;                       // its name leads to no file, which was said
    bool to_end = false;                     // it was when it was read last
    std::optional<FileIdentity> after = {};  // to be read when that input is done
    Clock::time_point quiet_since = {};
    // When it was last written to, if what is judged was there after that, and a later change would show.
    std::chrono::nanoseconds modified{-1};
    // When it was last written to before it was read, and its folder when that was last searched for copies.
    std::filesystem::file_time_type written = {};
    std::filesystem::file_time_type searched = {};
  };
  // A file that was read to its end, and is not followed any more.
  struct Left {
    FileIdentity identity;
    FileEnd end;
  };

  bool advance(std::size_t input, const std::function<bool()>& between);
  bool read(std::size_t input, bool last, const std::function<bool()>& between);
  bool look_at_name(std::size_t input);
  void look_last();
  std::vector<std::string> followed() const;
  FilesBetween come_beside(const std::string& name, const FileSource* old, const FileSource& now);
  void warn_of(const std::string& path, const std::string& name, std::string_view meanwhile);
  std::optional<FileIdentity> add_between(const std::string& name, const FileSource* old,
                                          const FileSource& now);
  bool is_known(const FileIdentity& found, int descriptor) const;
  bool has_own_name(const FileIdentity& file) const;
  bool is_copy_of_read(const FileSource& file) const;
  bool is_within_record(std::size_t input, std::uint64_t left) const;
  bool waits(std::size_t input) const;
  bool is_over(std::size_t input) const;
  void check_followed_once(const std::string& name, const FileIdentity& file) const;
  void add(std::string name, FileSource source, Followed followed);
  void retire(std::size_t input);
  bool is_rewritten(std::size_t input);
  std::string newer_copy(std::size_t input);
  std::string copy_of(std::size_t input, std::uint64_t records);
  // A read during which the file was truncated.
  struct Interrupted {
    SourcePosition judged;  // before anybody noticed
    FileEnd last;           // the last bytes that were read
  };
  bool begin_again(std::size_t input, const Interrupted* interrupted);
  void restart(std::size_t input, const std::function<bool()>& between,
               const Interrupted* interrupted = nullptr);
  bool open_missing();
  std::optional<FileSource> open(const std::string& name) const;
  void tell(const std::string& text) const;

  Parts parts_;
  std::vector<Followed> files_;  // one per input
  std::vector<std::string> missing_;
  std::vector<Left> left_;  // the last ones
  // For each name what was beside it when it was last seen to lead to the same file, or to none.
  std::map<std::string, FilesBeside> beside_;
  std::vector<std::string> unsure_;
  std::size_t current_ = 0;
  bool reading_ = false;
  bool stopped_ = false;
  bool changed_ = false;
};

}  // namespace sluice::cli
