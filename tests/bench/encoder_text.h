// A program of BERT's size in StableHLO.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "c_abi.h"
#include "kiln/kiln.h"

namespace kiln::bench {

// BERT-base, for one text of 128 tokens: an encoder of 12 layers, each attention and a perceptron
// with a residual and a layer norm. The weights are arguments.
class Encoder {
 public:
  // `batch` sequences of 128 tokens.
  explicit Encoder(int64_t batch = 1);

  const std::string& text() const { return text_; }
  // Of the arguments.
  const std::vector<std::vector<int64_t>>& dims() const { return dims_; }

 private:
  std::string text_;
  std::vector<std::vector<int64_t>> dims_;
};

// Arguments for it. Layers share their weights: only the time matters.
class EncoderArguments {
 public:
  EncoderArguments(const Encoder& encoder, const Context& context);
  ~EncoderArguments();
  EncoderArguments(const EncoderArguments&) = delete;
  EncoderArguments& operator=(const EncoderArguments&) = delete;

  const std::vector<kiln_buffer*>& buffers() const { return buffers_; }

 private:
  std::map<std::vector<int64_t>, kiln_buffer*> arrays_;
  std::vector<kiln_buffer*> buffers_;
};

}  // namespace kiln::bench
