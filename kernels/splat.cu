// Splat: a picture of bodies, each a small disc of light, added up per pixel. Sums are integers, so that their order
// does not matter, and all float operations round the same everywhere: the picture is identical, bit for bit, on any
// device.
//
// kernel           what it does
// splat_bodies     projects each body and adds its light to the pixels around
// splat_develop    converts sums of light to colors for a screen

// Rows right, up and forward, each with its shift: camera = (row . position) + shift.
__constant__ float CAMERA[12];

// Colors by index: red, green, blue in the low three bytes.
__constant__ unsigned int PALETTE[256];

// `origins` are the bodies' color indices if `speed_scale` is 0; else the palette's last color has speed `speed_scale`.
// A disc's radius is `1 << size` pixels; positions are rounded to 1/16 pixel. Bodies nearer than `nearest` are not
// drawn. `light` has three sums per pixel.
extern "C" __global__ void splat_bodies(const float4 *bodies, const float4 *velocities, const unsigned char *origins,
                                        unsigned int *light, int n, int width, int height, float focal, float nearest,
                                        float speed_scale, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 body = bodies[i];
    float depth = fmaf(CAMERA[8], body.x, fmaf(CAMERA[9], body.y, fmaf(CAMERA[10], body.z, CAMERA[11])));
    if (!(depth > nearest)) return;
    float right = fmaf(CAMERA[0], body.x, fmaf(CAMERA[1], body.y, fmaf(CAMERA[2], body.z, CAMERA[3])));
    float up = fmaf(CAMERA[4], body.x, fmaf(CAMERA[5], body.y, fmaf(CAMERA[6], body.z, CAMERA[7])));
    float scale = focal / depth;
    float column = fmaf(right, scale, 0.5f * width);
    float row = fmaf(-up, scale, 0.5f * height);
    int radius = 1 << size;
    if (!(column > -radius && column < width + radius && row > -radius && row < height + radius)) return;

    int color = origins[i];
    if (speed_scale > 0.0f) {
        float4 v = velocities[i];
        float speed = sqrtf(fmaf(v.x, v.x, fmaf(v.y, v.y, __fmul_rn(v.z, v.z))));
        color = (int)fminf(__fmul_rn(speed / speed_scale, 255.0f), 255.0f);
    }
    unsigned int red = PALETTE[color] & 255, green = PALETTE[color] >> 8 & 255, blue = PALETTE[color] >> 16 & 255;

    // Pixel (c, r) is the square from c to c + 1: its center is at 16 c + 8.
    int x = (int)floorf(__fmul_rn(column, 16.0f)), y = (int)floorf(__fmul_rn(row, 16.0f));
    int reach = 16 * radius, most = reach * reach;
    int left = max((x - reach + 8) >> 4, 0), last = min((x + reach - 8) >> 4, width - 1);
    int bottom = min((y + reach - 8) >> 4, height - 1);
    for (int r = max((y - reach + 8) >> 4, 0); r <= bottom; ++r)
        for (int c = left; c <= last; ++c) {
            int dx = 16 * c + 8 - x, dy = 16 * r + 8 - y;
            int inside = most - dx * dx - dy * dy;
            if (inside <= 0) continue;
            // (1 - (d/radius)^2)^2, in sixteenths.
            unsigned int weight = (unsigned int)inside * (unsigned int)inside >> (12 + 4 * size);
            if (weight == 0) continue;
            unsigned int *pixel = light + 3 * (r * width + c);
            atomicAdd(&pixel[0], weight * red);
            atomicAdd(&pixel[1], weight * green);
            atomicAdd(&pixel[2], weight * blue);
        }
}

// The tone curve x / (1 + x) of a pixel's brightest color never saturates, so that the center of a galaxy keeps its
// structure; all three colors have the same scale, which preserves the hue, except for WHITENING of the brightest
// pixels, as on film. The square root is the screen's gamma.
#define WHITENING 0.02f
extern "C" __global__ void splat_develop(const unsigned int *light, unsigned char *picture, float gain, int pixels) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    unsigned int reds = light[3 * i], greens = light[3 * i + 1], blues = light[3 * i + 2];
    // Most pixels are dark.
    if ((reds | greens | blues) == 0) {
        picture[3 * i] = picture[3 * i + 1] = picture[3 * i + 2] = 0;
        return;
    }
    float red = __fmul_rn((float)reds, gain);
    float green = __fmul_rn((float)greens, gain);
    float blue = __fmul_rn((float)blues, gain);
    float brightest = fmaxf(red, fmaxf(green, blue));
    float white = __fmul_rn(__fmul_rn(brightest, WHITENING), brightest);
    float whole = __fadd_rn(1.0f, __fadd_rn(brightest, white));
    picture[3 * i] = (unsigned char)fmaf(sqrtf(__fadd_rn(red, white) / whole), 255.0f, 0.5f);
    picture[3 * i + 1] = (unsigned char)fmaf(sqrtf(__fadd_rn(green, white) / whole), 255.0f, 0.5f);
    picture[3 * i + 2] = (unsigned char)fmaf(sqrtf(__fadd_rn(blue, white) / whole), 255.0f, 0.5f);
}
