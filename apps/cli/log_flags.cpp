#include "log_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "sluice/base/error.hpp"
#include "sluice/base/near_miss.hpp"
#include "sluice/stream/event_time.hpp"
#include "sluice/stream/json_tree.hpp"
#include "sluice/stream/splitter.hpp"

namespace sluice::cli {
namespace {

// The first record and the first time of a file are looked for in so many bytes.
constexpr std::size_t kLookBytes = std::size_t{1} << 20;

using Names = std::vector<std::string>;

bool has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string listed(const Names& names, const char* before = "", const char* last = ", ") {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? last : ", ") + (before + names[i]);
  return text;
}

// Lines of web servers: an expression of what stands before and around the fields that are wanted.
//
// Within quotes nginx writes a quote as \x22 and Apache as \", so a backslash takes the next byte with
// it. Requests that are none ("-", bytes of TLS, blanks in a URL) do not match `method`, `url` and
// `protocol`: such a record has no key, and is passed through. Each byte decides how the match goes
// on (except after an optional virtual host, and for `user` of nginx), which RE2 does in one pass.
class WebLog {
 public:
  WebLog(bool apache, Names wanted, bool timed)
      : apache_(apache), wanted_(std::move(wanted)), timed_(timed) {}

  static Names names(bool apache) {
    Names names = {"ip",       "user",   "time",  "request", "method", "url",
                   "protocol", "status", "bytes", "referer", "agent"};
    if (apache) names.insert(names.end(), {"vhost", "ident"});
    return names;
  }

  std::string expression() const {
    std::string text = "^";
    if (has(wanted_, "vhost"))
      text += "([^: ]+:\\d+) ";
    else if (apache_)
      text += "(?:[^: ]+:\\d+ )?";  // not an IPv6 address, which has more colons
    text += part("ip", "\\S+");
    if (apache_)
      text += ' ' + part("ident", "\\S+") + ' ' + part("user", "\\S+") + " \\[";
    else
      text += has(wanted_, "user") ? " - ([^\\[]+?) \\[" : " - [^\\[]*\\[";
    text += time() + "\\] \"";
    if (!wants({"request", "method", "url", "protocol", "status", "bytes", "referer", "agent"}))
      return text;
    text += request() + '"';
    if (!wants({"status", "bytes", "referer", "agent"})) return text;
    text += ' ' + part("status", "\\S+");
    if (!wants({"bytes", "referer", "agent"})) return text;
    text += ' ' + part("bytes", "\\S+");
    if (!wants({"referer", "agent"})) return text;
    text += " \"" + part("referer", kQuoted) + '"';
    if (wants({"agent"})) text += " \"" + part("agent", kQuoted) + '"';
    return text;
  }

 private:
  static constexpr const char* kQuoted = "(?:[^\"\\\\]|\\\\.)*";
  static constexpr const char* kWord = "(?:[^ \"\\\\]|\\\\.)+";

  bool wants(std::initializer_list<const char*> names) const {
    return std::ranges::any_of(names, [this](const char* name) { return has(wanted_, name); });
  }

  std::string part(const char* name, const std::string& pattern) const {
    return has(wanted_, name) ? '(' + pattern + ')' : pattern;
  }

  std::string time() const { return part("time", timed_ ? "(?P<time>[^\\]]*)" : "[^\\]]*"); }

  std::string request() const {
    if (!wants({"method", "url", "protocol"})) return part("request", kQuoted);
    return part("request", part("method", kWord) + ' ' + part("url", kWord) + ' ' +
                               part("protocol", "HTTP/[\\d.]+"));
  }

  bool apache_;
  Names wanted_;
  bool timed_;
};

Names wanted_names(const RecordFlags& flags, const Names& known) {
  Names wanted;
  for (const std::string& key : flags.keys) {
    for (std::size_t at = 0; at <= key.size();) {
      const std::size_t end = std::min(key.find(',', at), key.size());
      const std::string name = key.substr(at, end - at);
      at = end + 1;
      if (!has(known, name)) {
        const auto meant = near_miss(name, known);
        throw BadParameters(fmt::format(
            "--key: '{}' is no field of --log {}, whose fields are {}{}", name, flags.log,
            listed(known, "", " and "), meant ? fmt::format(": did you mean '{}'?", *meant) : ""));
      }
      if (!has(wanted, name)) wanted.push_back(name);
    }
  }
  return wanted;
}

std::string apply_web_log(RecordFlags& flags, bool by_time) {
  if (!flags.event_time.empty() || !flags.time_bytes.empty())
    throw BadParameters(fmt::format("--log {} has its time in brackets: leave {} out", flags.log,
                                    time_flag(flags)));
  const bool apache = flags.log == "apache";
  Names wanted = wanted_names(flags, WebLog::names(apache));
  if (wanted.empty()) wanted = {"ip", "url"};
  flags.keys.clear();
  flags.key_regex = WebLog(apache, wanted, by_time).expression();
  std::string text = fmt::format("--key-regex '{}'", flags.key_regex);
  if (by_time && flags.times.format.empty()) {
    flags.times.format = "clf";
    text += " --time-format clf";
  }
  return text;
}

bool is_regular(const std::string& file) {
  std::error_code error;
  return file != "-" && std::filesystem::is_regular_file(file, error);
}

// The beginning of a file, as records that may be parsed where they are.
class Beginning {
 public:
  Beginning(const std::string& file, const Format& format, Archives archives)
      : bytes_(kLookBytes + kPaddingBytes) {
    FileSource source = FileSource::open(file, -1, "input", archives);
    std::size_t size = 0;
    std::size_t got = 1;
    while (size < kLookBytes && got > 0)
      size += got = source.read(std::span(bytes_).subspan(size, kLookBytes - size));
    make_splitter(format)->split({bytes_.data(), size}, got == 0, kBatchRecords, records_);
    if (!records_.empty() && records_[0].text().starts_with("\xEF\xBB\xBF")) {
      records_[0].data += 3;
      records_[0].body -= 3;
    }
  }
  std::span<const Record> records() const { return records_; }

 private:
  std::vector<char> bytes_;
  std::vector<Record> records_;
};

// What JSON logs call the time of a record, and the record itself. Ids of requests and traces are
// not in the list: several records may share one.
const Names kTimeNames = {"time",     "timestamp", "@timestamp", "ts",         "t",        "date",
                          "datetime", "eventTime", "event_time", "created_at", "createdAt"};
const Names kKeyNames = {"id",         "_id",       "uuid",   "event_id", "eventId",
                         "message_id", "messageId", "log_id", "logId",    "insertId"};

// The first file that is not empty: a log may have been rotated just now.
std::string first_with_records(const std::vector<std::string>& files, Archives archives) {
  for (const std::string& file : files) {
    if (!is_regular(file)) break;
    if (!Beginning(file, {.kind = Format::Kind::json}, archives).records().empty()) return file;
  }
  return files.front();
}

class JsonLog {
 public:
  JsonLog(const std::string& file, Archives archives)
      : beginning_(file, {.kind = Format::Kind::json}, archives), file_(file) {
    const auto records = beginning_.records();
    if (records.empty())
      throw BadParameters(fmt::format(
          "--log json: '{}' has no record that would tell the fields of its key and its time: give "
          "--json, --key and --event-time",
          file));
    if (!tree_.parse(records[0].text()) || tree_.root().kind() != JsonKind::object)
      throw BadParameters(fmt::format(
          "--log json: the first record of '{}' is not a JSON object, so the fields of its key and "
          "its time are not known: give --json, --key and --event-time",
          file));
    tree_.root().visit_members(
        [this](std::string_view name, const JsonTree::Value& value) { add(name, value); });
  }

  // The one field that may be it.
  std::string only(const Names& found, const Names& known, const char* what,
                   const char* flag) const {
    if (found.size() == 1) return "/" + found[0];
    if (found.empty())
      throw BadParameters(fmt::format(
          "--log json: the first record of '{}' has none of {} as its {}, but {}: give {}", file_,
          listed(known, "", " and "), what,
          names_.empty() ? "nothing" : listed(names_, "/", " and "), flag));
    throw BadParameters(fmt::format("--log json: the {} of '{}' may be {}: give {}", what, file_,
                                    listed(found, "/", " or "), flag));
  }
  const Names& keys() const { return keys_; }
  const Names& times() const { return times_; }

 private:
  void add(std::string_view name, const JsonTree::Value& value) {
    if (names_.size() < 30 && !has(names_, name)) names_.emplace_back(name);
    const bool scalar = value.kind() == JsonKind::string || value.kind() == JsonKind::number;
    if (!scalar) return;
    if (has(kKeyNames, name)) keys_.emplace_back(name);
    if (has(kTimeNames, name) && TimeReader().read(value.text())) times_.emplace_back(name);
  }

  Beginning beginning_;
  std::string file_;
  JsonTree tree_;
  Names names_, keys_, times_;
};

std::string apply_json_log(RecordFlags& flags, const std::vector<std::string>& files,
                           LogTimes times, Archives archives) {
  flags.json = true;
  const bool needs_key = flags.keys.empty();
  const bool needs_time = times == LogTimes::needed && flags.event_time.empty();
  const bool may_have_time = times == LogTimes::if_there && flags.event_time.empty() &&
                             !files.empty() && is_regular(files.front());
  if (needs_key || needs_time || may_have_time) {
    if (files.empty() || !is_regular(files.front()))
      throw BadParameters(fmt::format(
          "--log json looks at the first record to find its {}, which needs a FILE: for a pipe, "
          "give --json{}{}",
          !needs_time ? "key"
          : needs_key ? "key and its time"
                      : "time",
          needs_key ? ", --key" : "", needs_time ? " and --event-time" : ""));
    const JsonLog log(first_with_records(files, archives), archives);
    if (needs_key) flags.keys = {log.only(log.keys(), kKeyNames, "key", "--key")};
    if (needs_time || (may_have_time && log.times().size() == 1))
      flags.event_time = log.only(log.times(), kTimeNames, "time", "--event-time");
  }
  std::string text = "--json";
  for (const std::string& key : flags.keys) text += fmt::format(" --key '{}'", key);
  if (times != LogTimes::no && !flags.event_time.empty())
    text += fmt::format(" --event-time '{}'", flags.event_time);
  return text;
}

std::optional<Nanoseconds> first_time(const std::string& file, const DedupOptions& options,
                                      Archives archives) {
  const Beginning beginning(file, options.format, archives);
  const auto records = beginning.records();
  std::vector<Nanoseconds> times(records.size());
  std::vector<KeyStatus> status(records.size(), KeyStatus::keyed);
  EventTimes event_times(options.format, *options.event_time, options.time_format, true,
                         {.by = options.time_by, .trim = options.key_style.trim});
  event_times.extract(records, times, status);
  const auto first = std::ranges::find(status, KeyStatus::keyed);
  if (first == status.end()) return std::nullopt;
  return times[static_cast<std::size_t>(first - status.begin())];
}

}  // namespace

std::optional<std::string> apply_log(RecordFlags& flags, const std::vector<std::string>& files,
                                     LogTimes times, Archives archives) {
  if (flags.log.empty()) return std::nullopt;
  if (flags.log != "nginx" && flags.log != "apache" && flags.log != "json")
    throw BadParameters(fmt::format("--log '{}' is not nginx, apache or json", flags.log));
  if (flags.nul || flags.csv || flags.tsv || flags.json || !flags.key_regex.empty() ||
      !flags.key_bytes.empty() || !flags.delimiter.empty())
    throw BadParameters(fmt::format(
        "--log {} says what the records are: leave --null, --csv, --tsv, --json, --key-regex, "
        "--key-bytes and --delimiter out, and name the key with --key",
        flags.log));
  return fmt::format("--log {} means {}", flags.log,
                     flags.log == "json" ? apply_json_log(flags, files, times, archives)
                                         : apply_web_log(flags, times != LogTimes::no));
}

std::optional<std::string> order_by_time(std::vector<std::string>& files,
                                         const DedupOptions& options, Archives archives) {
  if (files.size() < 2 || !std::ranges::all_of(files, is_regular)) return std::nullopt;
  std::vector<std::pair<std::optional<Nanoseconds>, std::string>> timed;
  for (const std::string& file : files)
    timed.emplace_back(first_time(file, options, archives), file);
  // A file without a time, such as an empty one, may be read at any moment: first.
  std::ranges::stable_sort(timed, {}, [](const auto& each) { return each.first; });
  std::vector<std::string> ordered;
  for (auto& [time, file] : timed) ordered.push_back(std::move(file));
  if (ordered == files) return std::nullopt;
  files = std::move(ordered);
  constexpr std::size_t kMostNames = 5;
  const Names shown(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(
                                                       std::min(files.size(), kMostNames)));
  return fmt::format(
      "the files are read in the order of their first times: {}{}", listed(shown),
      files.size() > kMostNames ? fmt::format(" and {} more", files.size() - kMostNames) : "");
}

}  // namespace sluice::cli
