#include "connectors/gnuplot/gnuplot.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace sluice {
namespace {

constexpr const char* kColours[] = {"#3b6ea5", "#c17d11", "#3f8f4f", "#b03030",
                                    "#4b2e83", "#138d90", "#8a5a44", "#666666"};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

void need_gnuplot(std::string_view who, std::string_view otherwise) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0)
    throw GnuplotFailed(fmt::format(
        "{} needs gnuplot, which is not installed: install the package gnuplot-nox, or {}", who,
        otherwise));
}

std::string run_gnuplot(const std::string& script) {
  // The script is in a file without a name, so that none is left behind and nothing needs quoting
  // for the shell.
  const File file(std::tmpfile());
  if (!file || std::fwrite(script.data(), 1, script.size(), file.get()) != script.size() ||
      std::fflush(file.get()) != 0)
    throw IoError("cannot write a script for gnuplot", errno);
  const std::string command = fmt::format("gnuplot /dev/fd/{}", fileno(file.get()));
  std::FILE* gnuplot = popen(command.c_str(), "r");
  if (gnuplot == nullptr) throw IoError("cannot start gnuplot", errno);
  std::string picture;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, gnuplot))
    picture.append(buffer, count);
  if (pclose(gnuplot) != 0 || picture.empty())
    throw GnuplotFailed("gnuplot failed: nothing was drawn");
  return picture;
}

std::string gnuplot_text(std::string_view text) {
  // In a text in single quotes gnuplot reads two single quotes as one.
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

const char* gnuplot_colour(std::size_t curve) {
  return kColours[curve % std::size(kColours)];
}

}  // namespace sluice
