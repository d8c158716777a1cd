#include "shared.hpp"

namespace sluice::cli {

bool is_server_url(std::string_view text) {
  return text.starts_with("redis://") || text.starts_with("redis+cluster://");
}

}  // namespace sluice::cli
