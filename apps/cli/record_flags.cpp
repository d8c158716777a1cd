#include "record_flags.hpp"

#include <fmt/format.h>

#include "arguments.hpp"
#include "sluice/base/error.hpp"

namespace sluice::cli {
namespace {

Format::Kind kind_of(const RecordFlags& flags) {
  if (flags.nul + flags.csv + flags.tsv + flags.json > 1)
    throw BadParameters("--null, --csv, --tsv and --json exclude each other: give one of them");
  if (flags.nul) return Format::Kind::nul;
  if (flags.csv) return Format::Kind::csv;
  if (flags.tsv) return Format::Kind::tsv;
  return flags.json ? Format::Kind::json : Format::Kind::lines;
}

// What separates fields: one byte, or \t.
void set_delimiter(const RecordFlags& flags, Format& format) {
  const std::string& text = flags.delimiter;
  if (text.empty()) return;
  const bool lines = format.kind == Format::Kind::lines || format.kind == Format::Kind::nul;
  const bool fields = !flags.keys.empty() || !flags.event_time.empty();
  if (format.kind == Format::Kind::tsv)
    throw BadParameters(
        "--tsv has tabs between its columns: give --csv with --delimiter, or leave --delimiter "
        "out");
  if (format.kind == Format::Kind::json || (lines && !fields))
    throw BadParameters(
        "--delimiter separates the columns of CSV and the fields of lines: give it with --csv, or "
        "with --key 2 or the like");
  if (text == "\n" && format.kind == Format::Kind::lines)
    throw BadParameters(
        "--delimiter cannot be a newline, which ends the record: give another character, or "
        "records that end with a NUL byte (--null)");
  if (text == "\\t")
    format.delimiter = '\t';
  else if (text.size() == 1)
    format.delimiter = text[0];
  else
    throw BadParameters(fmt::format(
        "--delimiter '{}' is not one byte: give a character such as ',' or '\\t'", text));
  if (format.kind == Format::Kind::csv && (text == "\"" || text == "\n" || text == "\r"))
    throw BadParameters(
        "--delimiter of CSV cannot be a quote or the end of a line: give a character such as ';'");
}

Format format_of(const RecordFlags& flags) {
  Format format;
  format.kind = kind_of(flags);
  format.header = !flags.no_header;
  const bool table = format.kind == Format::Kind::csv || format.kind == Format::Kind::tsv;
  if (flags.no_header && !table) throw BadParameters("--no-header needs --csv or --tsv");
  set_delimiter(flags, format);
  return format;
}

// Of --key, --key-regex and --key-bytes, at most one.
void set_keys(const RecordFlags& flags, DedupOptions& options) {
  if (!flags.keys.empty() + !flags.key_regex.empty() + !flags.key_bytes.empty() > 1)
    throw BadParameters("--key, --key-regex and --key-bytes exclude each other: give one of them");
  options.keys = flags.keys;
  options.key_style = {
      .ignore_case = flags.ignore_case, .trim = flags.trim, .unless_empty = !flags.empty_keys};
  if (!flags.key_regex.empty()) {
    options.keys = {flags.key_regex};
    options.key_style.by = KeyStyle::By::regex;
  }
  if (!flags.key_bytes.empty()) {
    options.keys = {flags.key_bytes};
    options.key_style.by = KeyStyle::By::bytes;
  }
}

void need_lines(const RecordFlags& flags, const std::string& value, const char* flag,
                const char* instead) {
  if (!value.empty() && (flags.csv || flags.tsv || flags.json))
    throw BadParameters(fmt::format("{} is for lines and --null records: with {}, name {}", flag,
                                    flags.csv   ? "--csv"
                                    : flags.tsv ? "--tsv"
                                                : "--json",
                                    instead));
}

bool groups_time(const std::string& expression) {
  try {
    return !expression.empty() && has_time_group(expression);
  } catch (const BadKey& error) {
    throw BadParameters(fmt::format("--key-regex {}", error.what()));
  }
}

}  // namespace

void add_record_flags(Command& command, RecordFlags& flags) {
  command.flag("-0,--null", flags.nul, "Records end with a NUL byte instead of a newline");
  command.flag("--csv", flags.csv, "CSV with a header; quoted fields may hold newlines");
  command.flag("--tsv", flags.tsv, "Like --csv, with tabs");
  command.flag("--json,--ndjson", flags.json, "One JSON value per line");
  command.flag("--no-header", flags.no_header, "CSV and TSV: the first record is data");
  command.option(
      "-k,--key", flags.keys,
      "The fields that make two records the same [the whole record]. CSV, TSV: column names "
      "or numbers. JSON: pointers (/user/id,/ad). Lines: field numbers. May be repeated",
      "FIELD[,FIELD]");
  command.option("--key-regex", flags.key_regex,
                 "Lines: the key is what the groups of this regular expression match, or the "
                 "whole match; a group (?P<time>...) is the event time",
                 "REGEX");
  command.option("--key-bytes", flags.key_bytes,
                 "Lines of fixed width: the key is these ranges of bytes, counted from 1",
                 "1-8[,21-30]");
  command.option("--log", flags.log,
                 "Lines of this log. The key is the address and the URL, or the fields that --key "
                 "names (ip,url,user,status,...); with a time window the time is the log's. JSON: "
                 "the fields with the id and the time are looked for",
                 "nginx|apache|json");
  command.option("-d,--delimiter", flags.delimiter,
                 "The byte that separates columns of CSV [,] or fields of lines [runs of blanks "
                 "and tabs]",
                 "CHAR");
  command.flag("--ignore-case", flags.ignore_case, "Compare keys without case");
  command.flag("--trim", flags.trim, "Compare keys without the blanks around each part");
  command.flag(
      "--empty-keys", flags.empty_keys,
      "A key whose fields are all empty (JSON: null or \"\") is a key like others, so that "
      "such records are duplicates of each other [they have no key]");
  command.flag("--binary", flags.binary,
               "Read the bytes of compressed files, archives and binary tables as records, instead "
               "of unpacking or refusing them");
}

const char* time_flag(const RecordFlags& flags) {
  if (!flags.event_time.empty()) return "--event-time";
  if (!flags.time_bytes.empty()) return "--time-bytes";
  return groups_time(flags.key_regex) ? "--key-regex" : nullptr;
}

const char* key_flag(const KeyStyle& style) {
  switch (style.by) {
    case KeyStyle::By::regex:
    case KeyStyle::By::time_group:
      return "--key-regex";
    case KeyStyle::By::bytes:
      return "--key-bytes";
    case KeyStyle::By::fields:
      break;
  }
  return "--key";
}

void understand_records(const RecordFlags& flags, DedupOptions& options) {
  options.format = format_of(flags);
  set_keys(flags, options);
  need_lines(flags, flags.key_regex, "--key-regex", "fields with --key");
  need_lines(flags, flags.key_bytes, "--key-bytes", "fields with --key");
  need_lines(flags, flags.time_bytes, "--time-bytes", "the field with --event-time");
  if (!flags.event_time.empty() && !flags.time_bytes.empty())
    throw BadParameters("--event-time and --time-bytes exclude each other: give one of them");
  const bool grouped = groups_time(flags.key_regex);
  if (grouped && (!flags.event_time.empty() || !flags.time_bytes.empty()))
    throw BadParameters(
        fmt::format("--key-regex has a group 'time', so {} is one time too many: give one of them",
                    time_flag(flags)));
  if (grouped) {
    options.event_time = flags.key_regex;
    options.time_by = KeyStyle::By::time_group;
  } else if (!flags.time_bytes.empty()) {
    options.event_time = flags.time_bytes;
    options.time_by = KeyStyle::By::bytes;
  } else if (!flags.event_time.empty()) {
    options.event_time = flags.event_time;
  }
}

bool any_given(const RecordFlags& flags) {
  return flags.nul || flags.csv || flags.tsv || flags.json || flags.no_header || flags.binary ||
         !flags.keys.empty() || !flags.key_regex.empty() || !flags.key_bytes.empty() ||
         !flags.delimiter.empty() || !flags.log.empty() || flags.ignore_case || flags.trim ||
         flags.empty_keys || !flags.event_time.empty() || !flags.time_bytes.empty();
}

}  // namespace sluice::cli
