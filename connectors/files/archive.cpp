#include "connectors/files/archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "connectors/files/packing.hpp"

namespace sluice {
namespace {

using namespace std::string_view_literals;

constexpr char kAnyByte = '?';

// Signatures are as long as it takes to be no text: those of bzip2, Parquet and others begin with
// letters.
constexpr std::array kArchives{
    Archive{"\xfd\x37zXZ\0"sv, "is compressed with xz", "xzcat"},
    Archive{"BZh?1AY&SY"sv, "is compressed with bzip2", "bzcat"},
    Archive{"\x04\x22\x4d\x18"sv, "is compressed with lz4", "lz4cat"},
    Archive{"\x25\xb5\x2f\xfd"sv, "is compressed with zstd 0.5", "zstdcat"},
    Archive{"\x26\xb5\x2f\xfd"sv, "is compressed with zstd 0.6", "zstdcat"},
    Archive{"\x27\xb5\x2f\xfd"sv, "is compressed with zstd 0.7", "zstdcat"},
    // Dictionaries have at least 64 KiB, and sizes are below 2^48 or unknown.
    Archive{"]\0\0??\xff\xff\xff\xff\xff\xff\xff\xff"sv, "is compressed with lzma", "lzcat"},
    Archive{"]\0\0????????\0\0"sv, "is compressed with lzma", "lzcat"},
    Archive{"\xff\x06\0\0sNaPpY"sv, "is compressed with snappy", "snzip -dc"},
    Archive{"LZIP\x01"sv, "is compressed with lzip", "lzip -dc"},
    Archive{"\x1f\x9d"sv, "is compressed with compress", "zcat"},
    Archive{"PK\x03\x04"sv, "is a zip archive", "unzip -p"},
    Archive{"PK\x05\x06"sv, "is an empty zip archive", "unzip -p"},
    Archive{"7z\xbc\xaf\x27\x1c"sv, "is a 7z archive", "7z x -so"},
    Archive{"Rar!\x1a\x07"sv, "is a rar archive", "unrar p -inul"},
    Archive{"PAR1\x15"sv, "is a Parquet file", ""},
    Archive{"Obj\x01"sv, "is an Avro file", ""},
    Archive{"ARROW1\0"sv, "is an Arrow file", ""},
    Archive{"FEA1\0\0\0\0"sv, "is a Feather file", ""},
    Archive{"\x89HDF\r"sv, "is an HDF5 file", ""},
    Archive{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "is an OLE file (.xls, .doc)", ""},
    Archive{"SQLite format 3\0"sv, "is an SQLite database", ""},
};

// Its mark comes after the name of the first member.
constexpr Archive kTar{"ustar"sv, "is a tar archive", "tar -xOf"};
constexpr std::size_t kTarMark = 257;

// What follows their marks tells them from text.
constexpr Archive kOrc{"ORC"sv, "is an ORC file", ""};
constexpr Archive kUtf16{""sv, "is UTF-16 text", "iconv -f UTF-16 -t UTF-8", "convert"};

// The first stream begins with a binary byte, or with a newline and a binary length. Text may have tabs and newlines
// there, and zeros between records.
constexpr std::size_t kOrcMark = 3;

bool is_orc(std::string_view bytes) {
  const auto is_binary = [](unsigned char byte) {
    return byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r' && byte != '\0';
  };
  if (!bytes.starts_with(kOrc.signature)) return false;
  const std::string_view stream = bytes.substr(kOrcMark);
  const std::size_t at = stream.starts_with('\n') ? 1 : 0;
  return stream.size() > at && is_binary(stream[at]);
}

// A byte order mark, and a half of some letter or newline. Text in Latin-1 may begin with the same two letters.
bool is_utf16(std::string_view bytes) {
  return (bytes.starts_with("\xff\xfe"sv) || bytes.starts_with("\xfe\xff"sv)) &&
         bytes.find('\0') != std::string_view::npos;
}

bool is_utf16_start(std::string_view bytes) {
  return bytes == "\xff"sv || bytes == "\xfe"sv || bytes == "\xff\xfe"sv || bytes == "\xfe\xff"sv;
}

bool agree(std::string_view bytes, std::string_view signature) {
  const std::size_t count = std::min(bytes.size(), signature.size());
  for (std::size_t i = 0; i < count; ++i)
    if (signature[i] != kAnyByte && signature[i] != bytes[i]) return false;
  return true;
}

}  // namespace

const Archive* archive_of(std::string_view first_bytes) noexcept {
  for (const Archive& archive : kArchives)
    if (first_bytes.size() >= archive.signature.size() && agree(first_bytes, archive.signature))
      return &archive;
  if (is_orc(first_bytes)) return &kOrc;
  if (is_utf16(first_bytes)) return &kUtf16;
  const bool tar =
      first_bytes.size() > kTarMark && first_bytes.substr(kTarMark).starts_with(kTar.signature);
  return tar ? &kTar : nullptr;
}

bool is_archive_start(std::string_view first_bytes) noexcept {
  if (first_bytes.find_first_of("\n\0"sv) != std::string_view::npos) return false;
  if (is_packing_start(first_bytes) || is_utf16_start(first_bytes) ||
      (first_bytes.size() <= kOrcMark && agree(first_bytes, kOrc.signature)))
    return true;
  return std::ranges::any_of(kArchives, [first_bytes](const Archive& archive) {
    return first_bytes.size() < archive.signature.size() && agree(first_bytes, archive.signature);
  });
}

std::string refusal_of(const Archive& archive, const std::string& file, bool insist) {
  const std::string remedy =
      archive.command.empty()
          ? "convert it to CSV or JSON lines first"
          : fmt::format("{} it on the way, as in {} {} | sluice ...", archive.does, archive.command,
                        file.empty() ? "FILE" : "'" + file + "'");
  return fmt::format("{} {}, and its bytes are not records: {}{}",
                     file.empty() ? "standard input" : "'" + file + "'", archive.is, remedy,
                     insist ? ", or give `binary` to read them as they are" : "");
}

}  // namespace sluice
