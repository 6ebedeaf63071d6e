"""Models of transformers' Flax part: every architecture small, and four at the size they are used in."""

import jax
import jax.numpy as jnp
import numpy as np
import transformers

BATCH, LENGTH, SIDE = 2, 16, 32

# Sizes under the names that configurations have for them.
TEXT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=37, max_position_embeddings=64)
PAIR = dict(vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=37,
            decoder_ffn_dim=37, encoder_attention_heads=4, decoder_attention_heads=4,
            max_position_embeddings=64)
GPT = dict(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)
T5 = dict(vocab_size=99, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_decoder_layers=2, num_heads=4)
IMAGE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37,
             image_size=SIDE, patch_size=8)
STAGES = dict(embedding_size=8, hidden_sizes=[8, 16, 16, 32], depths=[1, 1, 2, 1])
ROTARY = dict(TEXT, num_key_value_heads=2)
CLIP = dict(text_config=dict(TEXT, eos_token_id=98),
            vision_config=IMAGE, projection_dim=16)
AUDIO = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             intermediate_size=37, conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
             num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=2, do_stable_layer_norm=True,
             feat_extract_norm='layer', num_feat_extract_layers=3)

# Name: the class of the model, its configuration, and what it takes.
SMALL = {
    'albert': ('Albert', dict(TEXT, embedding_size=16, num_hidden_groups=1), 'text'),
    'bart': ('Bart', PAIR, 'pair'),
    'beit': ('Beit', IMAGE, 'image'),
    'bert': ('Bert', TEXT, 'text'),
    'big_bird': ('BigBird', dict(TEXT, attention_type='original_full'), 'text'),
    'blenderbot': ('Blenderbot', PAIR, 'pair'),
    'blenderbot_small': ('BlenderbotSmall', PAIR, 'pair'),
    'bloom': ('Bloom', dict(vocab_size=99, hidden_size=32, n_layer=2, n_head=4), 'text'),
    'clip': ('CLIP', CLIP, 'clip'),
    'dinov2': ('Dinov2', IMAGE, 'image'),
    'distilbert': ('DistilBert', dict(vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=37), 'text'),
    'electra': ('Electra', dict(TEXT, embedding_size=32), 'text'),
    'gemma': ('Gemma', dict(ROTARY, head_dim=8), 'text'),
    'gpt2': ('GPT2', GPT, 'text'),
    'gpt_neo': ('GPTNeo', dict(vocab_size=99, hidden_size=32, num_layers=2, num_heads=4, window_size=8,
                               attention_types=[[['global', 'local'], 1]],
                               max_position_embeddings=64), 'text'),
    'gptj': ('GPTJ', dict(GPT, rotary_dim=4), 'text'),
    'llama': ('Llama', ROTARY, 'text'),
    'longt5': ('LongT5', dict(T5, local_radius=4, encoder_attention_type='local'), 'pair'),
    'marian': ('Marian', dict(PAIR, pad_token_id=1, decoder_start_token_id=1), 'pair'),
    'mbart': ('MBart', PAIR, 'pair'),
    'mistral': ('Mistral', ROTARY, 'text'),
    'mt5': ('MT5', T5, 'pair'),
    'opt': ('OPT', dict(TEXT, ffn_dim=37, word_embed_proj_dim=32), 'text'),
    'pegasus': ('Pegasus', PAIR, 'pair'),
    'regnet': ('RegNet', dict(STAGES, groups_width=8), 'image'),
    'resnet': ('ResNet', dict(STAGES, layer_type='bottleneck'), 'image'),
    'roberta': ('Roberta', TEXT, 'text'),
    'roberta_prelayernorm': ('RobertaPreLayerNorm', TEXT, 'text'),
    'roformer': ('RoFormer', dict(TEXT, embedding_size=32), 'text'),
    't5': ('T5', T5, 'pair'),
    'vit': ('ViT', IMAGE, 'image'),
    'wav2vec2': ('Wav2Vec2', AUDIO, 'audio'),
    'whisper': ('Whisper', dict(PAIR, num_mel_bins=16, max_source_positions=30,
                                max_target_positions=64), 'sound'),
    'xglm': ('XGLM', dict(vocab_size=99, d_model=32, num_layers=2, attention_heads=4, ffn_dim=37), 'text'),
    'xlm_roberta': ('XLMRoberta', TEXT, 'text'),
}

# As they are published: class, configuration, inputs, batch, length or side.
FULL = {
    'ResNet-50': ('ResNet', {}, 'image', 1, 224),
    'BERT-base': ('Bert', {}, 'text', 1, 128),
    'GPT-2': ('GPT2', {}, 'text', 1, 128),
    'ViT-base': ('ViT', {}, 'image', 1, 224),
}


def clip(array, min=None, max=None, a_min=None, a_max=None, clip=jnp.clip):  # pylint: disable=redefined-builtin
    """jnp.clip with the names that transformers' T5 has for its bounds."""
    return clip(array, a_min if min is None else min, a_max if max is None else max)


jnp.clip = clip


def inputs(kind, config, batch, length, side):
    # With this seed no ReLU of ResNet-50 has an argument within rounding of 0, where gradients jump.
    random = np.random.default_rng(13)
    text_config = getattr(config, 'text_config', config)

    def ids():
        return random.integers(3, text_config.vocab_size - 1, (batch, length)).astype(np.int32)

    def floats(*dims):
        return random.normal(size=dims).astype(np.float32)

    mask = np.ones((batch, length), np.int32)
    mask[-1, length - length // 4:] = 0
    return {
        'text': lambda: dict(input_ids=ids(), attention_mask=mask),
        'pair': lambda: dict(input_ids=ids(), attention_mask=mask, decoder_input_ids=ids()),
        'image': lambda: dict(pixel_values=floats(batch, 3, side, side)),
        'clip': lambda: dict(input_ids=ids(), attention_mask=mask,
                             pixel_values=floats(batch, 3, side, side)),
        'audio': lambda: dict(input_values=floats(batch, 800)),
        'sound': lambda: dict(input_features=floats(batch, config.num_mel_bins, 60),
                              decoder_input_ids=ids()),
    }[kind]()


def parameters(shapes):
    """Numbers for parameters of the shapes given, the same on every platform."""
    random = np.random.default_rng(0)

    def fill(path, leaf):
        name = str(path[-1])
        value = random.normal(size=leaf.shape).astype(np.float32)
        if 'var' in name:
            return 1 + 0.1 * np.abs(value)
        if 'scale' in name or ('weight' in name and len(leaf.shape) == 1):
            return 1 + 0.1 * value
        fan_in = np.prod(leaf.shape[:-1]) if len(leaf.shape) > 1 else 100
        return value * np.float32(min(0.1, fan_in ** -0.5))

    return jax.tree_util.tree_map_with_path(fill, shapes)


def model(entry):
    """The function of a model, with parameters first, and its arguments."""
    name, sizes, kind, *full = entry
    batch, size = full or (BATCH, None)
    config = getattr(transformers, name + 'Config')(**sizes)
    flax = getattr(transformers, f'Flax{name}Model')
    extra = {'input_shape': (1, 800)} if kind == 'audio' else {}
    made = flax(config, _do_init=False, **extra)
    given = inputs(kind, config, batch, size or LENGTH, size or SIDE)

    def forward(params, given):
        outputs = made(**given, params=params)
        return [x for x in jax.tree.leaves(outputs) if jnp.issubdtype(x.dtype, jnp.floating)]

    return forward, parameters(made.params_shape_tree), given


def forward_of(entry):
    forward, params, given = model(entry)
    return forward, (params, given), 0


def gradient_of(entry):
    forward, params, given = model(entry)

    def loss(params, given):
        return sum(jnp.mean(x * jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape))
                   for x in forward(params, given))

    return jax.grad(loss), (params, given), 0
